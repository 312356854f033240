//! Approvals as responses show them.

use toolgate_api::approvals::{Approval, CommandPart, CommandState, Offer, Presentation, Risk, RiskLevel};
use toolgate_gate::ports::approver;
use toolgate_gate::refusal::Refusal;
use toolgate_model::approval;

use crate::router::App;

/// An approval, with what an approver should know before the decision.
pub(crate) async fn shown(app: &App, approval: &approval::Approval) -> Result<Approval, Refusal> {
    Ok(Approval::new(approval, presentation(app.gate.approvals.present(approval).await?)))
}

fn presentation(presentation: approver::Presentation) -> Presentation {
    Presentation {
        risk: Risk {
            level: match presentation.risk.level {
                approver::RiskLevel::Low => RiskLevel::Low,
                approver::RiskLevel::Medium => RiskLevel::Medium,
                approver::RiskLevel::High => RiskLevel::High,
            },
            notes: presentation.risk.notes,
        },
        parts: presentation.parts.into_iter().map(command_part).collect(),
        offers: presentation.offers.into_iter().map(offer).collect(),
        no_offer_reason: presentation.no_offer_reason,
    }
}

fn command_part(part: approver::Part) -> CommandPart {
    CommandPart {
        text: part.text,
        state: match part.state {
            approver::PartState::Granted => CommandState::Granted,
            approver::PartState::New => CommandState::New,
            approver::PartState::Risky => CommandState::Risky,
        },
        why: part.why,
    }
}

fn offer(offer: approver::Offer) -> Offer {
    Offer { scope: offer.scope, rule: offer.rule, matches: offer.matches, does_not_match: offer.does_not_match }
}
