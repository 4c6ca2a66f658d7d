//! `/`: the actions that the caller may start, as cards with forms made from their schemas.

use super::form::{Field, Input, fields, local_text};
use super::shell::{ScriptJson, Shell, script_json};
use crate::core::action::Action;
use askama::Template;
use serde_json::json;

/// One card.
pub struct Card {
    /// The action's key.
    pub key: String,
    /// What the button is called.
    pub title: String,
    /// What it does, in one line.
    pub description: String,
    /// "usually 48 s", when that is known.
    pub usual: Option<String>,
    /// The form.
    pub fields: Vec<Field>,
    /// Whether the form stands open: it came back with faults.
    pub open: bool,
    /// What became of the last click, where that needs words.
    pub note: Option<String>,
}

/// The cards under one heading.
pub struct CardGroup {
    /// The heading.
    pub title: String,
    /// In the order of their keys.
    pub cards: Vec<Card>,
}

/// The page.
#[derive(Template)]
#[template(path = "pages/buttons.html")]
pub struct ButtonsPage<'a> {
    /// The frame.
    pub page: &'a Shell,
    /// The cards, grouped.
    pub groups: Vec<CardGroup>,
    /// The actions with their schemas, for the script's forms.
    pub actions_json: ScriptJson,
}

/// What a form sent and what was wrong with it.
pub struct Refused {
    /// The action.
    pub action: String,
    /// What was sent, by field.
    pub sent: std::collections::HashMap<String, String>,
    /// Faults by field.
    pub errors: Vec<(String, String)>,
    /// A fault of the whole form.
    pub note: Option<String>,
}

impl<'a> ButtonsPage<'a> {
    /// The page for the actions that the caller may click, each with its usual duration in ms where known.
    #[must_use]
    pub fn new(page: &'a Shell, actions: &[(&Action, Option<i64>)], refused: Option<&Refused>) -> Self {
        let mut groups: Vec<CardGroup> = Vec::new();
        for (action, usual_ms) in actions {
            let title = group_title(page, action);
            let card = card(page, action, *usual_ms, refused.filter(|r| r.action == action.key));
            match groups.iter_mut().find(|group| group.title == title) {
                Some(group) => group.cards.push(card),
                None => groups.push(CardGroup { title, cards: vec![card] }),
            }
        }
        Self { page, groups, actions_json: actions_json(page, actions) }
    }
}

fn group_title(page: &Shell, action: &Action) -> String {
    let title = action.group.get(page.w.lang());
    if title.is_empty() { page.t("action.other").into_owned() } else { title.to_owned() }
}

fn card(page: &Shell, action: &Action, usual_ms: Option<i64>, refused: Option<&Refused>) -> Card {
    let lang = page.w.lang();
    let mut fields = fields(&action.params, lang);
    for (field, refused) in fields.iter_mut().zip(std::iter::repeat(refused)) {
        if let Some(refused) = refused {
            field.value = refused.sent.get(&field.name).cloned().unwrap_or_default();
            field.error =
                refused.errors.iter().find(|(name, _)| *name == field.name).map(|(_, message)| message.clone());
        }
    }
    Card {
        key: action.key.clone(),
        title: action.title.get(lang).to_owned(),
        description: action.description.get(lang).to_owned(),
        usual: usual_ms.map(|ms| page.w.fill("action.usual", &[("duration", page.watch.span(ms).into())])),
        fields,
        open: refused.is_some(),
        note: refused.and_then(|r| r.note.clone()),
    }
}

fn actions_json(page: &Shell, actions: &[(&Action, Option<i64>)]) -> ScriptJson {
    let lang = page.w.lang();
    let listed: Vec<_> = actions
        .iter()
        .map(|(action, _)| {
            json!({
                "key": action.key,
                "title": action.title.get(lang),
                "description": action.description.get(lang),
                "params": localized(&action.params, lang),
            })
        })
        .collect();
    script_json(&listed)
}

/// The schema with the texts of one language in place.
fn localized(schema: &serde_json::Value, lang: &str) -> serde_json::Value {
    let mut schema = schema.clone();
    for property in schema["properties"].as_object_mut().into_iter().flat_map(|p| p.values_mut()) {
        for name in ["title", "description"] {
            let text = local_text(property, name, lang);
            if let Some(property) = property.as_object_mut().filter(|_| !text.is_empty()) {
                property.insert(name.to_owned(), text.into());
            }
        }
    }
    schema
}
