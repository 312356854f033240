//! How much memory is held, by which key, and in which order bodies are parsed.

use super::*;

const MIB: usize = 1024 * 1024;

fn memory(all: usize, of_key: usize) -> Arc<BodyMemory> {
    Arc::new(BodyMemory::new(all * MIB, of_key * MIB))
}

#[test]
fn sixty_bodies_of_seven_mebibytes_do_not_all_fit() {
    let memory = memory(256, 64);
    let shares: Vec<_> = (0..60).map(|_| memory.share(1)).collect();
    let taken = shares.iter().filter(|share| share.read(7 * MIB).is_ok()).count();
    assert_eq!(taken, 3, "what one key may hold");
    let refused = shares.last().unwrap().read(7 * MIB).unwrap_err();
    assert_eq!(refused.code(), Code::TooManyInFlight);
    assert!(refused.details().any(|(name, _)| name == "retry_after_seconds"));

    let others: Vec<_> = (2..60).map(|key| memory.share(key)).collect();
    let taken = others.iter().filter(|share| share.read(7 * MIB).is_ok()).count();
    assert_eq!(taken, 9, "what all may hold");
    assert_eq!(others.last().unwrap().read(7 * MIB).unwrap_err().code(), Code::Overloaded);

    drop((shares, others));
    let held = memory.held();
    assert!(held.total == 0 && held.by_key.is_empty(), "everything is given back");
}

#[test]
fn a_body_grows_within_its_own_share_and_small_ones_are_not_counted() {
    let memory = memory(4, 2);
    let share = memory.share(1);
    share.read(SMALL).unwrap();
    assert_eq!(memory.held().total, 0);
    for bytes in [SMALL + 1, 100_000, 300_000] {
        share.read(bytes).unwrap();
        assert_eq!(memory.held().total, bytes * PER_BYTE);
    }
}

#[test]
fn a_body_that_nothing_is_in_the_way_of_is_taken_unless_it_is_more_than_there_is() {
    let memory = memory(4, 2);
    assert_eq!(memory.share(1).read(8 * MIB).unwrap_err().code(), Code::BodyTooLarge);
    let large = memory.share(1);
    large.read(MIB).unwrap();
    assert_eq!(memory.share(1).read(MIB).unwrap_err().code(), Code::TooManyInFlight);
    assert_eq!(memory.share(2).read(MIB).unwrap_err().code(), Code::Overloaded);
    drop(large);
    memory.share(2).read(MIB).unwrap();
}

#[tokio::test]
async fn what_is_parsed_counts_by_its_values() {
    let memory = memory(256, 64);
    let dense = vec![b','; MIB / 2];
    let (first, second) = (memory.share(1), memory.share(1));
    first.parse(&dense).await.unwrap();
    assert_eq!(memory.held().total, MIB / 2 * (PER_BYTE + PER_VALUE));
    assert!(second.parse(&dense).await.is_err(), "two such bodies take more than a key may hold");
    assert_eq!(memory.share(2).parse(&vec![b','; 2 * MIB]).await.unwrap_err().code(), Code::BodyTooLarge);
}

#[tokio::test]
async fn many_large_bodies_of_one_key_leave_turns_to_others() {
    let memory = memory(256, 128);
    let (order, body) = (Arc::new(Mutex::new(Vec::new())), Arc::new(vec![b'x'; 2 * SMALL]));
    let tasks: Vec<_> = std::iter::repeat_n(1, 50)
        .chain([2])
        .map(|key| {
            let (share, order, body) = (memory.share(key), Arc::clone(&order), Arc::clone(&body));
            tokio::spawn(async move {
                share.read(body.len()).unwrap();
                share.parse(&body).await.unwrap();
                order.lock().unwrap().push(key);
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    let place = order.lock().unwrap().iter().position(|key| *key == 2).unwrap();
    assert!(place <= 2 * TURNS, "the other key came after {place} bodies of the first");
}
