//! Messages are understood in every spelling that peers understand, and a card leads to the gate and nowhere else.
