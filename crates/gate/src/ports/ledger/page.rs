//! Paging: lists are read in the order of their ids, a page at a time, from a cursor on.

/// Which page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageRequest {
    /// The last id of the page before.
    pub after: Option<String>,
    /// How many at most.
    pub limit: u32,
}

impl PageRequest {
    /// The most that one page holds.
    pub const LIMIT: u32 = 1000;

    /// The first page of this many.
    pub fn first(limit: u32) -> Self {
        Self { after: None, limit: limit.min(Self::LIMIT) }
    }
}

/// One page.
#[derive(Debug, Clone, PartialEq)]
pub struct Page<T> {
    /// What is on it.
    pub items: Vec<T>,
    /// Where the next one begins; `None` on the last.
    pub next: Option<String>,
}

impl<T> Page<T> {
    /// Makes a page from one item more than was asked for, which shows that there is a next page.
    pub fn cut(mut items: Vec<T>, limit: u32, id: impl Fn(&T) -> String) -> Self {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let more = items.len() > limit;
        items.truncate(limit);
        let next = if more { items.last().map(id) } else { None };
        Self { items, next }
    }

    /// The same page of other things.
    pub fn map<U>(self, change: impl FnMut(T) -> U) -> Page<U> {
        Page { items: self.items.into_iter().map(change).collect(), next: self.next }
    }
}
