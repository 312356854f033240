//! A profile of callgrind: functions, the instructions of each, and how often each calls another.

use std::collections::HashMap;

/// The functions that allocate: of mimalloc, which serves Rust, and of the C library, which serves SQLite and aws-lc.
const ALLOCATE: [&str; 4] = ["mi_malloc_aligned", "mi_malloc", "mi_zalloc_aligned", "mi_zalloc"];
const REALLOCATE: [&str; 2] = ["mi_realloc_aligned", "mi_realloc"];
const ALLOCATE_IN_C: [&str; 4] = ["malloc", "calloc", "realloc", "posix_memalign"];

/// The function of SQLite that flushes a file.
const FLUSH: &str = "unixSync";

#[derive(Debug, Default, PartialEq, Eq)]
pub struct Profile {
    pub instructions: u64,
    /// Instructions of the block function of SHA-256.
    pub hashing: u64,
    /// Allocations by Rust code.
    pub allocated: u64,
    /// Reallocations by Rust code.
    pub reallocated: u64,
    /// Allocations by C code.
    pub of_c: u64,
    pub flushes: u64,
}

impl Profile {
    /// None where the text is no profile.
    pub fn read(text: &str) -> Option<Self> {
        let mut profile = Self::default();
        let mut names = HashMap::new();
        let (mut function, mut callee) = ("", "");
        // The line after a `calls=` line is the cost of the callee.
        let mut of_callee = false;
        for line in text.lines() {
            if let Some(name) = line.strip_prefix("fn=") {
                function = resolve(&mut names, name)?;
            } else if let Some(name) = line.strip_prefix("cfn=") {
                callee = resolve(&mut names, name)?;
            } else if let Some(call) = line.strip_prefix("calls=") {
                of_callee = true;
                let count: u64 = call.split(' ').next()?.parse().ok()?;
                profile.count(function, callee, count);
            } else if line.starts_with(|first: char| first.is_ascii_digit() || "+-*".contains(first)) {
                if !std::mem::take(&mut of_callee) {
                    let cost: u64 = line.split(' ').nth(1)?.parse().ok()?;
                    profile.hashing += if is_hashing(function) { cost } else { 0 };
                }
            } else if let Some(total) = line.strip_prefix("totals: ") {
                profile.instructions = total.trim().parse().ok()?;
            }
        }
        (profile.instructions > 0).then_some(profile)
    }

    fn count(&mut self, caller: &str, callee: &str, count: u64) {
        let figure = if ALLOCATE.contains(&callee) {
            &mut self.allocated
        } else if REALLOCATE.contains(&callee) {
            &mut self.reallocated
        } else if ALLOCATE_IN_C.contains(&callee) {
            &mut self.of_c
        } else if callee == FLUSH {
            &mut self.flushes
        } else {
            return;
        };
        // An allocator that calls itself serves one request.
        let of_allocator = caller.starts_with("mi_") || ALLOCATE_IN_C.contains(&caller);
        *figure += if of_allocator { 0 } else { count };
    }
}

/// A name is written once, with its number, as in `(7) main`, and is `(7)` from then on.
fn resolve<'a>(names: &mut HashMap<&'a str, &'a str>, text: &'a str) -> Option<&'a str> {
    match text.split_once(' ') {
        Some((number, name)) => {
            names.insert(number, name);
            Some(name)
        }
        None => names.get(text).copied(),
    }
}

fn is_hashing(function: &str) -> bool {
    function.contains("sha256_block_data_order")
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
# callgrind format
events: Ir
summary: 1000

fn=(1) main
10 50
+3 7
cfn=(2) mi_malloc_aligned
calls=3 0
* 90
cfn=(3) mi_zalloc_aligned
calls=2 0
* 90
cfn=(4) malloc
calls=5 0
* 20
cfn=(6) unixSync
calls=1 0
* 20

fn=(3)
12 40
cfn=(2)
calls=2 0
* 60

fn=(5) aws_lc_0_47_0_sha256_block_data_order_avx
0 400
cfn=(7) mi_realloc_aligned
calls=4 0
-1 11

totals: 1000
";

    #[test]
    fn allocations_are_counted_once_and_costs_of_callees_are_not_those_of_the_caller() {
        let expected = Profile { instructions: 1000, hashing: 400, allocated: 5, reallocated: 4, of_c: 5, flushes: 1 };
        assert_eq!(Profile::read(TEXT), Some(expected));
    }

    #[test]
    fn any_other_text_is_no_profile() {
        assert_eq!(Profile::read(""), None);
        assert_eq!(Profile::read("fn=(9)\ntotals: 5\n"), None);
        assert_eq!(Profile::read("totals: many\n"), None);
    }
}
