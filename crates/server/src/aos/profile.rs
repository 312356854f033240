//! The settings of each calling runtime: the form of modifications that it understands, and how requests that need an
//! approval are handled.

use std::collections::BTreeMap;

use toolgate_dialect::aos::ModifiedForm;
use toolgate_gate::call::{AskForm, HookTerms, UnknownTools};
use toolgate_model::principal::PrincipalId;

/// The settings of all calling runtimes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HookSettings {
    /// With those that are not named.
    pub default: HookProfile,
    pub callers: BTreeMap<PrincipalId, HookProfile>,
}

/// The settings of one runtime.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookProfile {
    /// The form of modifications.
    pub form: ModifiedForm,
    /// How its questions are treated.
    pub terms: HookTerms,
}

impl HookSettings {
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
