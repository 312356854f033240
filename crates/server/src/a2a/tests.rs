//! Requests of every form are the same operations, and what is wrong with one is said in its form.
