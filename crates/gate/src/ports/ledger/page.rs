//! Paging: lists are read in the order of their ids, one page at a time, from a cursor.

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageRequest {
    /// The last id of the previous page.
    pub after: Option<String>,
    pub limit: u32,
}

impl PageRequest {
    /// The maximum size of a page.
    pub const LIMIT: u32 = 1000;

    pub fn first(limit: u32) -> Self {
        Self { after: None, limit: limit.min(Self::LIMIT) }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Page<T> {
    pub items: Vec<T>,
    /// The cursor of the next page; `None` on the last.
    pub next: Option<String>,
}

impl<T> Page<T> {
    /// Makes a page from one item more than requested, which shows that there is a next page.
    pub fn cut(mut items: Vec<T>, limit: u32, id: impl Fn(&T) -> String) -> Self {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let more = items.len() > limit;
        items.truncate(limit);
        let next = if more { items.last().map(id) } else { None };
        Self { items, next }
    }

    /// Converts the items of a page.
    pub fn map<U>(self, change: impl FnMut(T) -> U) -> Page<U> {
        Page { items: self.items.into_iter().map(change).collect(), next: self.next }
    }
}
