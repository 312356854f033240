//! Keys that are gone.

use super::{Bystander, Engine, fault};

fault! {
    a_missing_key_stops_the_start_and_is_not_replaced,
}

fn a_missing_key_stops_the_start_and_is_not_replaced(engine: Engine) {
    let world = engine.world(|setup| setup);
    let mut bystander = Bystander::of(&world);
    bystander.is_served();
    let setup = world.gate.setup().clone();
    let (_, _database) = world.stop();
    for name in ["master.key", "audit.key"] {
        let (path, kept) = (setup.configuration_home().join(name), setup.configuration_home().join("kept"));
        std::fs::rename(&path, &kept).unwrap();
        let message = setup.start_refused().stderr;
        assert!(message.contains(&path.display().to_string()), "{message}");
        assert!(!path.exists(), "nothing is written");
        std::fs::rename(&kept, &path).unwrap();
    }
    let gate = setup.start();
    assert_eq!(gate.request("GET", "/readyz", None).0, 200);
}
