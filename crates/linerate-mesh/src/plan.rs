//! A plan with its signature, as files have it and as a store keeps it.

use std::path::{Path, PathBuf};

use linerate_core::mesh::{Matrix, MeshCalendar, MeshPlan, Rules, SignedPlan, matrix};
use linerate_core::record::{Failure, Fault};
use linerate_engine::failure::words_of;
use linerate_proto::digest::sha256;
use linerate_store::{HubPlace, KeptPlan};

use super::hex;
use super::sign::verify;
use crate::schedule::NEWS_S;

/// A plan that can be run.
#[derive(Clone, Debug)]
pub struct Checked {
    /// The plan as its text says it.
    pub plan: MeshPlan,
    /// Begin and end of each run of the plan.
    pub calendar: MeshCalendar,
}

/// Reads a plan's text and places its runs.
/// # Errors
/// The file, its line and column, what is wrong and what is allowed.
pub fn parse_plan_text(text: &str, file: &str) -> Result<Checked, Failure> {
    let refused = |object: String, reason: String| {
        Failure::new(Fault::Usage, "read plan", object, reason)
            .advise("linerate help mesh-plan describes the file")
    };
    let mut plan = MeshPlan::from_toml(text).map_err(|error| {
        let object = match error.place {
            Some((line, column)) => format!("{file}:{line}:{column}"),
            None => file.to_owned(),
        };
        refused(object, error.reason)
    })?;
    plan.secret = hex::encode_bytes(&sha256(text.as_bytes())[..16]);
    let calendar =
        MeshCalendar::from_plan(&plan).map_err(|reason| refused(file.to_owned(), reason))?;
    Ok(Checked { plan, calendar })
}

/// Reads the rules of a hub.
/// # Errors
/// The file, its line and column, what is wrong and what is allowed.
pub(super) fn read_rules_file(file: &Path) -> Result<Rules, Failure> {
    let name = file.display().to_string();
    let refused = |object: String, reason: String| {
        Failure::new(Fault::Usage, "read rules", object, reason)
            .advise("linerate help mesh-plan describes the file")
    };
    let text = std::fs::read_to_string(file);
    let text = text.map_err(|error| refused(name.clone(), words_of(&error)))?;
    let rules = Rules::from_toml(&text).map_err(|error| {
        let object = match error.place {
            Some((line, column)) => format!("{name}:{line}:{column}"),
            None => name.clone(),
        };
        refused(object, error.reason)
    })?;
    let outputs = rules.alert.as_ref().map_or(Ok(()), crate::alert::check_outputs);
    outputs.map_err(|reason| refused(format!("{name}: alert"), reason))?;
    Ok(rules)
}

/// A plan's file with the signature beside it.
/// # Errors
/// When one of the files cannot be read, or the signature is not of the plan.
pub fn signed(file: &Path) -> Result<SignedPlan, Failure> {
    let read = |path: &Path| {
        std::fs::read_to_string(path).map_err(|error| {
            Failure::new(Fault::Usage, "read", path.display().to_string(), words_of(&error))
        })
    };
    let text = read(file)?;
    let beside = signature_file(file);
    let advice = format!("linerate mesh sign {} --key FILE signs it", file.display());
    let lines = read(&beside).map_err(|failure| failure.advise(advice.clone()))?;
    let mut lines = lines.lines().map(|line| line.trim().to_owned());
    let (key, signature) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
    let plan = SignedPlan { text, key, signature };
    verify(&plan).map_err(|reason| {
        Failure::new(Fault::Usage, "read plan", beside.display().to_string(), reason).advise(advice)
    })?;
    Ok(plan)
}

/// As a store keeps it.
pub(super) fn to_kept_plan(signed: &SignedPlan, plan: &MeshPlan, now_s: i64) -> KeptPlan {
    KeptPlan {
        revision: plan.revision,
        text: signed.text.clone(),
        key: signed.key.clone(),
        signature: signed.signature.clone(),
        kept_s: now_s,
    }
}

/// The matrix of a mesh from a hub's store: the newest result of each task and pair.
/// # Errors
/// When the store cannot be read or has no plan of it.
pub fn load_mesh_matrix(place: &HubPlace, mesh: &str, now_s: i64) -> Result<Matrix, Failure> {
    let mut store = place.open_store()?;
    let kept = store.list_plans(mesh)?.into_iter().next().ok_or_else(|| {
        let reason = format!("{} has no plan of it", store.location_name());
        Failure::new(Fault::Usage, "find mesh", mesh, reason)
    })?;
    let Checked { plan, calendar } = parse_plan_text(&kept.text, mesh)?;
    let (agents, cells) = (store.agents(mesh)?, store.newest_cells(mesh)?);
    let found = matrix(&plan, &calendar, &agents, &cells, kept.kept_s, now_s);
    let found = found.with_bookings(store.bookings(mesh, now_s - NEWS_S)?);
    Ok(found.with_incidents(store.incidents(mesh, now_s - NEWS_S)?))
}

/// Path of the file with a plan's signature.
pub fn signature_file(plan: &Path) -> PathBuf {
    let mut name = plan.as_os_str().to_owned();
    name.push(".sig");
    PathBuf::from(name)
}
