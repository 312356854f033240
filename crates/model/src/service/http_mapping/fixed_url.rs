//! The URL of a mapping that places no parameter in it: rendered and checked once, and not for each call.

use std::sync::OnceLock;

use url::Url;

use super::render_error::RenderError;
use crate::connection::BaseUrl;

/// The first such URL, with its base. It is derived from the mapping, so that it is no part of what makes two mappings
/// equal.
#[derive(Debug, Default)]
pub(super) struct FixedUrl(OnceLock<(BaseUrl, Url)>);

impl FixedUrl {
    /// The URL below this base. Calls with another base, such as that of another credential, render their own.
    pub(super) fn get(
        &self,
        base: &BaseUrl,
        render: impl FnOnce() -> Result<Url, RenderError>,
    ) -> Result<Url, RenderError> {
        match self.0.get() {
            Some((known, url)) if known == base => Ok(url.clone()),
            Some(_) => render(),
            None => {
                let url = render()?;
                // If another call was first, its URL is as good.
                let _ = self.0.set((base.clone(), url.clone()));
                Ok(url)
            }
        }
    }
}

impl Clone for FixedUrl {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl PartialEq for FixedUrl {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}
