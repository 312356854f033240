//! What is agreed with each runtime that asks: which form of a change it understands, and what becomes of a question that
//! a person must answer.

use std::collections::BTreeMap;

use toolgate_dialect::aos::ModifiedForm;
use toolgate_gate::call::{AskForm, HookTerms, UnknownTools};
use toolgate_model::principal::PrincipalId;

/// What is agreed with all runtimes that ask.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HookSettings {
    /// With those that are not named.
    pub default: HookProfile,
    /// With these callers.
    pub callers: BTreeMap<PrincipalId, HookProfile>,
}

/// What is agreed with one runtime.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookProfile {
    /// How it is told of a change.
    pub form: ModifiedForm,
    /// How its questions are treated.
    pub terms: HookTerms,
}

impl HookSettings {
    /// What is agreed with this caller.
    pub fn of(&self, caller: &PrincipalId) -> &HookProfile {
        self.callers.get(caller).unwrap_or(&self.default)
    }
}

impl Default for HookProfile {
    fn default() -> Self {
        let terms = HookTerms { ask: AskForm::default(), unknown_tools: UnknownTools::default(), wait: None };
        Self { form: ModifiedForm::default(), terms }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_that_is_named_has_its_own_profile_and_others_the_usual_one() {
        let named = PrincipalId::parse("joch").unwrap();
        let own = HookProfile { form: ModifiedForm::Fragment, ..HookProfile::default() };
        let settings =
            HookSettings { default: HookProfile::default(), callers: BTreeMap::from([(named.clone(), own.clone())]) };
        assert_eq!(settings.of(&named), &own);
        assert_eq!(settings.of(&PrincipalId::parse("other").unwrap()), &HookProfile::default());
    }
}
