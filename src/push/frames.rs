//! Frames that many connections send alike: made once of the same rendered texts, and shared.
//!
//! Two frames are the same when their topic, their head, their texts and their counts are: texts and counts are shared
//! values, so they are told apart by where they are and not by what they say. Frames are kept beside what they show and go
//! with it; few are kept, for who looks at the same thing differs in little.

use super::locked;
use super::protocol::CountsView;
use crate::core::ids::Head;
use bytes::Bytes;
use serde_json::value::RawValue;
use std::sync::{Arc, Mutex};

/// Frames that are kept in one place; above it all are forgotten.
const KEPT: usize = 8;

/// What a frame is made of.
#[derive(Clone, Debug)]
pub(super) struct Content {
    /// The topic.
    pub topic: String,
    /// The head that it tells.
    pub head: Head,
    /// The items.
    pub texts: Vec<Arc<RawValue>>,
    /// The counts, if it tells them.
    pub counts: Option<Arc<CountsView>>,
}

impl Content {
    fn is(&self, other: &Self) -> bool {
        let same_counts = match (&self.counts, &other.counts) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (one, other) => one.is_none() && other.is_none(),
        };
        let same_texts = || self.texts.iter().zip(&other.texts).all(|(one, other)| Arc::ptr_eq(one, other));
        (self.head, self.texts.len(), &self.topic) == (other.head, other.texts.len(), &other.topic)
            && same_counts
            && same_texts()
    }
}

/// Frames that were made.
#[derive(Debug, Default)]
pub(super) struct Frames(Mutex<Vec<(Content, Bytes)>>);

impl Frames {
    /// The frame of this content; whoever asks first makes it, and the others wait for that moment.
    pub fn get(&self, content: Content, make: impl FnOnce(&Content) -> Bytes) -> Bytes {
        let mut kept = locked(&self.0);
        if let Some((_, frame)) = kept.iter().find(|(known, _)| known.is(&content)) {
            return frame.clone();
        }
        let frame = make(&content);
        if kept.len() >= KEPT {
            kept.clear();
        }
        kept.push((content, frame.clone()));
        frame
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text() -> Arc<RawValue> {
        RawValue::from_string("{}".into()).unwrap().into()
    }

    #[test]
    fn p5_a_frame_is_made_once_for_all_that_get_the_same_and_anew_for_any_other() {
        let (frames, (one, other)) = (Frames::default(), (text(), text()));
        let content = |head, texts: &[&Arc<RawValue>]| Content {
            topic: "me".into(),
            head: Head(head),
            texts: texts.iter().copied().cloned().collect(),
            counts: None,
        };
        let made = std::cell::Cell::new(0);
        let get = |content: Content| {
            let make = |_: &Content| {
                made.set(made.get() + 1);
                Bytes::from(made.get().to_string())
            };
            frames.get(content, make)
        };
        let first = get(content(1, &[&one]));
        assert_eq!(get(content(1, &[&one])), first);
        let others = [
            content(2, &[&one]),
            content(1, &[&other]),
            content(1, &[&one, &other]),
            Content { topic: "ops".into(), ..content(1, &[&one]) },
        ];
        for content in others {
            assert_ne!(get(content), first);
        }
        assert_eq!(made.get(), 5);
        for head in 0..100 {
            get(content(head, &[&one]));
        }
        assert!(locked(&frames.0).len() <= KEPT, "no number of heads grows the memory");
    }
}
