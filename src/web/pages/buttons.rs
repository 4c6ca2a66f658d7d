//! `/`: the actions that the caller may start, as cards with forms made from their schemas.

use super::form::{Field, Input, fields, params};
use super::html;
use super::shell::{ScriptJson, Shell, script_json};
use super::visitor::{SignedForm, Visitor};
use crate::core::action::Action;
use crate::core::principal::{Principal, Scope};
use crate::core::resolve::Request;
use crate::core::schema::localise_schema;
use crate::web::api::submit;
use crate::web::error::{ApiError, Code};
use crate::web::state::AppState;
use askama::Template;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Redirect, Response};
use serde_json::json;
use std::collections::HashMap;

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
    pub sent: HashMap<String, String>,
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
    let mut fields = fields(&localise_schema(&action.params, lang));
    if let Some(refused) = refused {
        for field in &mut fields {
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
                "params": localise_schema(&action.params, lang),
            })
        })
        .collect();
    script_json(&listed)
}

/// `GET /`
///
/// # Errors
/// Those of the store.
pub async fn show(State(state): State<AppState>, Visitor { who, shell }: Visitor) -> Result<Response, ApiError> {
    written(&state, &who, &shell, None).await
}

async fn written(
    state: &AppState,
    who: &Principal,
    shell: &Shell,
    refused: Option<&Refused>,
) -> Result<Response, ApiError> {
    let actions: Vec<_> = state.catalogue.actions.iter().filter(|a| a.clickable_by(who)).collect();
    let mut listed = Vec::with_capacity(actions.len());
    for action in &actions {
        listed.push((action.as_ref(), state.beside.usual(&who.tenant, &action.key).await?.duration_ms));
    }
    Ok(html(&ButtonsPage::new(shell, &listed, refused)))
}

/// `POST /actions/{key}`: what the API does with the same params; faults come back beside their fields.
///
/// # Errors
/// 404 for an action that is not the visitor's; those of the store.
pub async fn start(
    State(state): State<AppState>,
    Path(key): Path<String>,
    form: SignedForm,
) -> Result<Response, ApiError> {
    let Visitor { who, shell } = form.visitor;
    if !who.has(Scope::TasksWrite) {
        return Err(ApiError::new(Code::Forbidden));
    }
    let action = state.resolver.clickable(&who, &key)?;
    let request =
        Request { action: key.clone(), params: Some(params(&action.params, &form.fields)), ..Request::default() };
    let taken = match state.resolver.submit(&who, request) {
        Ok(click) => submit::accept(&state, &who, shell.w.lang(), click).await,
        Err(refusal) => Err(refusal.into()),
    };
    match taken {
        Ok((_, answer)) => Ok(Redirect::to(&format!("/tasks/{}", answer.task.summary.id)).into_response()),
        Err(error) if matches!(error.code.status().as_u16(), 409 | 422 | 429) => {
            let refused = refused(&shell, key, form.fields, &error);
            Ok((error.code.status(), written(&state, &who, &shell, Some(&refused)).await?).into_response())
        }
        Err(error) => Err(error),
    }
}

/// A refusal with each fault at its field, and the rest in a sentence.
fn refused(shell: &Shell, action: String, sent: HashMap<String, String>, error: &ApiError) -> Refused {
    let mut errors = Vec::new();
    let mut rest = Vec::new();
    for fault in &error.errors {
        let field = fault.path.strip_prefix("params.").unwrap_or_default();
        let name = field.split(['.', '[']).next().unwrap_or_default();
        match name {
            "" => rest.push(format!("{}: {}", fault.path, fault.message)),
            name => errors.push((name.to_owned(), fault.message.clone())),
        }
    }
    let reason = match (&error.detail, rest.is_empty()) {
        (_, false) => Some(rest.join("; ")),
        (detail, true) if errors.is_empty() => Some(detail.clone().unwrap_or_else(|| error.code.sentence().to_owned())),
        _ => None,
    };
    let note = match reason {
        Some(reason) => shell.w.with("form.error.refused", "reason", &reason),
        None => shell.t("form.error.form").into_owned(),
    };
    Refused { action, sent, errors, note: Some(note) }
}
