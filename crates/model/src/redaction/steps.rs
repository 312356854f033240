//! Steps of redaction, counted in tests only: they show without a clock that the cost grows with the length of the
//! text, and not with its square.

#[cfg(test)]
use std::cell::Cell;

#[cfg(test)]
thread_local! {
    static TAKEN: Cell<u64> = const { Cell::new(0) };
}

#[inline]
pub(super) fn count(steps: usize) {
    #[cfg(test)]
    TAKEN.with(|taken| taken.set(taken.get() + u64::try_from(steps).unwrap_or(u64::MAX)));
    #[cfg(not(test))]
    let _ = steps;
}

/// The number of steps that this takes.
#[cfg(test)]
pub(super) fn of(work: impl FnOnce()) -> u64 {
    TAKEN.with(|taken| taken.set(0));
    work();
    TAKEN.with(Cell::get)
}
