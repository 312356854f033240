//! Coordinated work: intents, leases, tasks, plans, coordinators and costs.

use http::{HeaderMap, header};
use toolgate_api::parameters::{Cursor, Limit};
use toolgate_api::work::objects::{MissingTool, Offset, UndelegatedTool};
use toolgate_gate::ports::ledger::{Page, PageRequest, Undelegated};
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::scope::ScopeSet;
use toolgate_model::work::MissingAccess;

use crate::mount::endpoint;
use crate::parameters::{FromPath, id, page};
use crate::router::Route;

mod coordinators;
mod costs;
mod events;
mod intents;
mod leases;
mod plans;
mod tasks;

/// The routes of coordinated work.
pub(super) fn routes() -> Vec<Route> {
    vec![
        endpoint(intents::create),
        endpoint(intents::list),
        endpoint(intents::show),
        endpoint(intents::patch_state),
        endpoint(intents::set_status),
        endpoint(intents::agents),
        endpoint(intents::assign),
        endpoint(intents::unassign),
        endpoint(events::list),
        endpoint(events::log),
        endpoint(leases::list),
        endpoint(leases::acquire),
        endpoint(leases::renew),
        endpoint(leases::release),
        endpoint(tasks::create),
        endpoint(tasks::show),
        endpoint(tasks::update),
        endpoint(tasks::claim),
        endpoint(tasks::check),
        endpoint(tasks::list),
        endpoint(plans::create),
        endpoint(plans::show),
        endpoint(plans::update),
        endpoint(plans::list),
        endpoint(plans::estimate),
        endpoint(coordinators::create),
        endpoint(coordinators::show),
        endpoint(coordinators::update),
        endpoint(coordinators::end),
        endpoint(coordinators::heartbeat),
        endpoint(coordinators::list),
        endpoint(costs::list),
        endpoint(costs::record),
    ]
}

/// The version in `If-Match`, with or without quotes.
fn version(headers: &HeaderMap) -> Result<Option<u64>, Refusal> {
    let mut values = headers.get_all(header::IF_MATCH).iter();
    let (Some(value), others) = (values.next(), values.next()) else { return Ok(None) };
    let text = value.to_str().unwrap_or_default().trim();
    let text = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text);
    let digits = (1..=10).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    let version = text.parse().ok().filter(|_| digits && others.is_none());
    version
        .map(Some)
        .ok_or_else(|| Refusal::new(Code::InvalidField, "`If-Match` must be one version").with("path", "If-Match"))
}

/// The version that a change of a task or plan must name.
fn required_version(headers: &HeaderMap) -> Result<u64, Refusal> {
    let advice = "send the header `If-Match` with the version that the change was decided on";
    version(headers)?.ok_or_else(|| Refusal::new(Code::VersionRequired, advice).with("path", "If-Match"))
}

/// Ids in a body. Text of the wrong form names nothing.
fn ids<T: FromPath>(texts: &[String]) -> Result<Vec<T>, Refusal> {
    texts.iter().map(|text| id(text)).collect()
}

/// The requested window of a list: after a cursor, or after a number of items, which are then read and left out.
struct Window {
    request: PageRequest,
    skip: usize,
}

impl Window {
    fn new(limit: Option<Limit>, cursor: Option<Cursor>, offset: Option<Offset>) -> Result<Self, Refusal> {
        let invalid = |reason: &str| Refusal::new(Code::InvalidField, reason).with("path", "offset");
        let skip = offset.map_or(0, |Offset(offset)| offset);
        if skip > Offset::MAXIMUM {
            return Err(invalid(&format!("`offset` must be at most {}; use `cursor` to read on", Offset::MAXIMUM)));
        }
        if skip > 0 && cursor.is_some() {
            return Err(invalid("`offset` and `cursor` exclude each other"));
        }
        Ok(Self { request: page(limit, cursor)?, skip: usize::try_from(skip).unwrap_or(usize::MAX) })
    }

    /// Reads the window from pages that follow each other.
    async fn read<T, F: Future<Output = Result<Page<T>, Refusal>>>(
        self,
        read: impl Fn(PageRequest) -> F,
    ) -> Result<Page<T>, Refusal> {
        let Self { mut request, mut skip } = self;
        let limit = request.limit;
        while skip > 0 {
            request.limit = u32::try_from(skip).unwrap_or(u32::MAX).min(PageRequest::LIMIT);
            let left_out = read(request.clone()).await?;
            skip -= left_out.items.len().min(skip);
            match left_out.next {
                Some(next) => request.after = Some(next),
                None => return Ok(Page { items: Vec::new(), next: None }),
            }
        }
        request.limit = limit;
        read(request).await
    }
}

fn missing(missing: Vec<MissingAccess>) -> Vec<MissingTool> {
    let shown = |missing: MissingAccess| MissingTool {
        service: missing.service,
        scopes: missing.scopes.into_iter().collect::<ScopeSet>(),
    };
    missing.into_iter().map(shown).collect()
}

fn undelegated(undelegated: Vec<Undelegated>) -> Vec<UndelegatedTool> {
    let shown = |undelegated: Undelegated| UndelegatedTool {
        service: undelegated.missing.service,
        scopes: undelegated.missing.scopes.into_iter().collect::<ScopeSet>(),
        reason: undelegated.reason,
    };
    undelegated.into_iter().map(shown).collect()
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn with(values: &[&'static str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(header::IF_MATCH, HeaderValue::from_static(value));
        }
        headers
    }

    #[test]
    fn a_version_is_one_number_with_or_without_quotes() {
        assert_eq!(version(&with(&["7"])), Ok(Some(7)));
        assert_eq!(version(&with(&["\"12\""])), Ok(Some(12)));
        assert_eq!(version(&with(&[])), Ok(None));
        for bad in
            [&["*"][..], &["W/\"1\""], &["1, 2"], &[""], &["-1"], &["+1"], &["\"1"], &["99999999999"], &["1", "1"]]
        {
            assert_eq!(version(&with(bad)).map_err(|refusal| refusal.code()), Err(Code::InvalidField), "{bad:?}");
        }
        assert_eq!(required_version(&with(&[])).map_err(|refusal| refusal.code()), Err(Code::VersionRequired));
    }

    #[tokio::test]
    async fn an_offset_leaves_out_items_and_a_cursor_excludes_it() {
        let pages = |request: PageRequest| async move {
            let after: usize = request.after.map_or(0, |after| after.parse().unwrap());
            let end = (after + usize::try_from(request.limit).unwrap()).min(2500);
            let next = (end < 2500).then(|| end.to_string());
            Ok(Page { items: (after..end).collect(), next })
        };
        let window = |limit, offset| Window::new(Some(Limit(limit)), None, Some(Offset(offset))).unwrap();
        assert_eq!(window(2, 0).read(pages).await.unwrap().items, [0, 1]);
        let page = window(3, 2100).read(pages).await.unwrap();
        assert_eq!((page.items, page.next.as_deref()), (vec![2100, 2101, 2102], Some("2103")));
        assert_eq!(window(10, 2495).read(pages).await.unwrap().items.len(), 5);
        assert!(window(10, 3000).read(pages).await.unwrap().items.is_empty());
        assert!(Window::new(None, Some(Cursor("7".to_owned())), Some(Offset(1))).is_err());
        assert!(Window::new(None, None, Some(Offset(10_001))).is_err());
    }
}
