//! The index of a policy set: Cedar evaluates every rule of a set, so a call is evaluated against a set of only those
//! rules whose scope can match it.

use std::collections::{HashMap, HashSet};

use cedar_policy::{ActionConstraint, EntityTypeName, EntityUid, Policy, PrincipalConstraint, ResourceConstraint};

/// An entity of a call with its ancestors.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub(super) uid: EntityUid,
    /// INVARIANT: the ancestors have no ancestors themselves, so that these are all.
    pub(super) above: HashSet<EntityUid>,
}

/// The scope of a rule: principal, action and resource.
#[derive(Debug, Clone)]
pub(super) struct Scope {
    principal: Side,
    action: Actions,
    resource: Side,
}

#[derive(Debug, Clone)]
enum Side {
    Any,
    Of(EntityTypeName),
    Exactly(EntityUid),
    Within(Option<EntityTypeName>, EntityUid),
}

#[derive(Debug, Clone)]
enum Actions {
    Any,
    Exactly(EntityUid),
    Within(Vec<EntityUid>),
}

/// Finds rules by entity. Each rule has one entry, or one for each of its actions.
#[derive(Debug, Default)]
pub(super) struct Index {
    by_entity: HashMap<Key, Vec<usize>>,
    everywhere: Vec<usize>,
}

#[derive(Debug, PartialEq, Eq, Hash)]
enum Key {
    Principal(EntityUid),
    Action(EntityUid),
    Resource(EntityUid),
}

impl Scope {
    pub(super) fn of(policy: &Policy) -> Self {
        let principal = match policy.principal_constraint() {
            PrincipalConstraint::Any => Side::Any,
            PrincipalConstraint::In(uid) => Side::Within(None, uid),
            PrincipalConstraint::Eq(uid) => Side::Exactly(uid),
            PrincipalConstraint::Is(kind) => Side::Of(kind),
            PrincipalConstraint::IsIn(kind, uid) => Side::Within(Some(kind), uid),
        };
        let resource = match policy.resource_constraint() {
            ResourceConstraint::Any => Side::Any,
            ResourceConstraint::In(uid) => Side::Within(None, uid),
            ResourceConstraint::Eq(uid) => Side::Exactly(uid),
            ResourceConstraint::Is(kind) => Side::Of(kind),
            ResourceConstraint::IsIn(kind, uid) => Side::Within(Some(kind), uid),
        };
        let action = match policy.action_constraint() {
            ActionConstraint::Any => Actions::Any,
            ActionConstraint::Eq(uid) => Actions::Exactly(uid),
            ActionConstraint::In(uids) => Actions::Within(uids),
        };
        Self { principal, action, resource }
    }

    /// The actions that the scope names, if any.
    pub(super) fn actions(&self) -> Option<&[EntityUid]> {
        match &self.action {
            Actions::Any => None,
            Actions::Exactly(uid) => Some(std::slice::from_ref(uid)),
            Actions::Within(uids) => Some(uids),
        }
    }

    /// Whether a call can match the scope.
    pub(super) fn fits(&self, principal: &Place, action: &Place, resource: &Place) -> bool {
        let action_fits = match &self.action {
            Actions::Any => true,
            Actions::Exactly(uid) => *uid == action.uid,
            Actions::Within(uids) => uids.iter().any(|uid| action.is_in(uid)),
        };
        action_fits && self.principal.fits(principal) && self.resource.fits(resource)
    }
}

impl Side {
    fn fits(&self, place: &Place) -> bool {
        let is_of = |kind: &EntityTypeName| place.uid.type_name() == kind;
        match self {
            Self::Any => true,
            Self::Of(kind) => is_of(kind),
            Self::Exactly(uid) => *uid == place.uid,
            Self::Within(kind, uid) => kind.as_ref().is_none_or(is_of) && place.is_in(uid),
        }
    }
}

impl Place {
    /// In Cedar every entity is also in itself.
    fn is_in(&self, uid: &EntityUid) -> bool {
        self.uid == *uid || self.above.contains(uid)
    }

    fn reachable(&self) -> impl Iterator<Item = &EntityUid> {
        std::iter::once(&self.uid).chain(&self.above)
    }
}

impl Index {
    /// Inserts a rule under the entity that the fewest calls have.
    pub(super) fn insert(&mut self, number: usize, scope: &Scope) {
        let keys = match (&scope.principal, &scope.resource, scope.actions()) {
            (Side::Exactly(uid), ..) => vec![Key::Principal(uid.clone())],
            (_, Side::Exactly(uid), _) => vec![Key::Resource(uid.clone())],
            (Side::Within(_, uid), ..) => vec![Key::Principal(uid.clone())],
            (_, Side::Within(_, uid), _) => vec![Key::Resource(uid.clone())],
            (_, _, Some(actions)) => actions.iter().cloned().map(Key::Action).collect(),
            _ => return self.everywhere.push(number),
        };
        for key in keys {
            self.by_entity.entry(key).or_default().push(number);
        }
    }

    /// The numbers of the candidate rules, in order. Not all of them need match.
    pub(super) fn find(&self, principal: &Place, action: &Place, resource: &Place) -> Vec<usize> {
        let principals = principal.reachable().cloned().map(Key::Principal);
        let actions = action.reachable().cloned().map(Key::Action);
        let resources = resource.reachable().cloned().map(Key::Resource);
        let keys = principals.chain(actions).chain(resources);
        let mut found: Vec<usize> = keys.filter_map(|key| self.by_entity.get(&key)).flatten().copied().collect();
        found.extend(&self.everywhere);
        found.sort_unstable();
        found.dedup();
        found
    }
}
