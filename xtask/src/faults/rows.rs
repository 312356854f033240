//! The rows of the fault matrix. `docs/faults.md` has a section for each, which `cargo xtask tidy` compares.

/// A fault, the required behaviour of the gate, and the tests that show it.
pub struct Row {
    /// Its name, here and in the documentation.
    pub fault: &'static str,
    /// How the tests bring it about.
    pub injected: &'static str,
    /// The required behaviour of the gate.
    pub must: &'static str,
    sqlite: &'static [&'static str],
    postgres: &'static [&'static str],
}

impl Row {
    /// The tests of SQLite and of PostgreSQL; none where the fault cannot happen on an engine.
    pub fn engines(&self) -> [&'static [&'static str]; 2] {
        [self.sqlite, self.postgres]
    }

    pub fn tests(&self) -> impl Iterator<Item = &'static str> {
        self.engines().into_iter().flatten().copied()
    }
}

/// All of them, in the order of the documentation.
pub const ROWS: &[Row] = &[
    Row {
        fault: "disk full",
        injected: "RLIMIT_FSIZE; SQLSTATE 53100",
        must: "refuse changes with 503 LEDGER_UNAVAILABLE, go on reading, recover by itself, lose nothing",
        sqlite: &["disk_full::a_full_disk_refuses_changes_loses_nothing_and_recovers"],
        postgres: &["faults::storage::a_full_disk_of_postgresql_refuses_changes_loses_nothing_and_recovers"],
    },
    Row {
        fault: "disk errors",
        injected: "EIO of fdatasync; SQLSTATE 58030",
        must: "refuse changes with 503 LEDGER_UNAVAILABLE, go on reading, recover by itself, lose nothing",
        sqlite: &["faults::storage::sqlite::a_disk_that_fails_refuses_changes_and_loses_nothing"],
        postgres: &["faults::storage::postgres::a_disk_that_fails_refuses_changes_and_loses_nothing"],
    },
    Row {
        fault: "ledger removed",
        injected: "rm, mv; DROP DATABASE",
        must: "acknowledge nothing, fail /readyz, begin no new ledger",
        sqlite: &["keys_and_files::nothing_is_acknowledged_once_the_ledger_was_removed_or_replaced"],
        postgres: &["faults::storage::a_database_that_was_dropped_is_not_begun_anew"],
    },
    Row {
        fault: "older ledger",
        injected: "an earlier copy put back",
        must: "serve nothing until the operator says --accept-ledger-rollback, which is an event",
        sqlite: &[
            "rollback::an_older_copy_of_the_ledger_stops_the_start_until_the_operator_accepts_it",
            "rollback::a_ledger_that_is_gone_is_not_replaced_by_an_empty_one",
        ],
        postgres: &["rollback::a_database_restored_from_a_copy_is_noticed_by_running_gates_and_by_later_starts"],
    },
    Row {
        fault: "lost keys",
        injected: "master.key, audit.key moved away",
        must: "refuse to start, name the file, write nothing",
        sqlite: &[
            "faults::keys::sqlite::a_missing_key_stops_the_start_and_is_not_replaced",
            "keys_and_files::a_lost_master_key_is_not_replaced_while_anything_is_sealed_under_it",
            "keys_and_files::a_lost_audit_key_is_not_replaced_once_the_log_was_begun",
        ],
        postgres: &["faults::keys::postgres::a_missing_key_stops_the_start_and_is_not_replaced"],
    },
    Row {
        fault: "clock steps",
        injected: "40 days forward and back",
        must: "show it on /readyz and in metrics, end nothing for good",
        sqlite: &["faults::clock::sqlite::a_clock_that_jumps_for_a_moment_ends_nothing_for_good"],
        postgres: &["faults::clock::postgres::a_clock_that_jumps_for_a_moment_ends_nothing_for_good"],
    },
    Row {
        fault: "killed process",
        injected: "SIGKILL, fifty times",
        must: "lose nothing that was acknowledged, and keep the log whole",
        sqlite: &["crash::fifty_kills_lose_nothing_on_sqlite"],
        postgres: &["crash::fifty_kills_lose_nothing_on_postgresql"],
    },
    Row {
        fault: "PostgreSQL hangs",
        injected: "SIGSTOP of connections, of the server",
        must: "respond within the timeout with 503 LEDGER_UNAVAILABLE, use new connections, recover by itself",
        sqlite: &[],
        postgres: &[
            "database_down::connections_that_hang_are_given_up_and_replaced",
            "faults::database::a_server_that_hangs_as_a_whole_is_refused_for_in_time_and_found_again",
        ],
    },
    Row {
        fault: "PostgreSQL restarts",
        injected: "immediate stop and start",
        must: "refuse with 503 LEDGER_UNAVAILABLE, recover by itself, lose nothing, call no outcome certain that is not",
        sqlite: &[],
        postgres: &[
            "database_down::a_database_that_crashes_and_comes_back_loses_nothing_acknowledged",
            "database_down::a_call_that_ran_and_could_not_be_settled_is_unknown_and_not_denied",
        ],
    },
    Row {
        fault: "few descriptors",
        injected: "RLIMIT_NOFILE 400, 600 connections",
        must: "serve agents and probes, log little, recover by itself",
        sqlite: &["faults::resources::sqlite::few_descriptors_are_kept_for_the_ledger_and_for_services"],
        postgres: &["faults::resources::postgres::few_descriptors_are_kept_for_the_ledger_and_for_services"],
    },
    Row {
        fault: "little memory",
        injected: "RLIMIT_DATA 700 MiB, 60 bodies of 7 MiB",
        must: "stay alive, serve other agents, refuse what is too much",
        sqlite: &["faults::resources::sqlite::large_bodies_do_not_end_a_process_with_little_memory"],
        postgres: &["faults::resources::postgres::large_bodies_do_not_end_a_process_with_little_memory"],
    },
    Row {
        fault: "silent and slow clients",
        injected: "300 that send nothing, half a head, or a byte at a time",
        must: "close each by its deadline, serve everybody else",
        sqlite: &["faults::clients::sqlite::silent_and_slow_clients_are_closed_and_hold_nobody_up"],
        postgres: &["faults::clients::postgres::silent_and_slow_clients_are_closed_and_hold_nobody_up"],
    },
    Row {
        fault: "flood by one agent",
        injected: "calls, refused calls and streams without a pause",
        must: "serve other agents in time",
        sqlite: &[
            "faults::floods::sqlite::a_flood_of_calls_by_one_agent_leaves_the_others_theirs",
            "faults::floods::sqlite::a_flood_of_refused_calls_leaves_the_others_theirs",
            "faults::floods::sqlite::a_flood_of_streams_by_one_agent_leaves_the_others_theirs",
        ],
        postgres: &[
            "faults::floods::postgres::a_flood_of_calls_by_one_agent_leaves_the_others_theirs",
            "faults::floods::postgres::a_flood_of_refused_calls_leaves_the_others_theirs",
            "faults::floods::postgres::a_flood_of_streams_by_one_agent_leaves_the_others_theirs",
        ],
    },
    Row {
        fault: "DNS down",
        injected: "getaddrinfo that fails, or hangs for 100 calls",
        must: "fail the calls that need a name, with the reason, and serve all others",
        sqlite: &[
            "faults::names::sqlite::names_that_cannot_be_looked_up_fail_their_own_calls_only",
            "faults::names::sqlite::names_that_are_looked_up_for_ever_hold_nobody_else_up",
        ],
        postgres: &[
            "faults::names::postgres::names_that_cannot_be_looked_up_fail_their_own_calls_only",
            "faults::names::postgres::names_that_are_looked_up_for_ever_hold_nobody_else_up",
        ],
    },
    Row {
        fault: "rolling restart",
        injected: "SIGTERM and start of two gates in turn, behind nginx, under load",
        must: "lose no request, make every call once",
        sqlite: &[],
        postgres: &["rolling_restart::a_rolling_restart_behind_nginx_loses_no_request"],
    },
];
