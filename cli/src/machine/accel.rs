//! Which accelerator executes the guest.
//!
//! `/dev/kvm` alone proves nothing: inside another virtual machine it may belong to a paravirtual KVM (`kvm_pvm`) that
//! interprets ordinary kernels at under two million instructions a second, slower than QEMU's own translator. So KVM is
//! taken only when the processor's own module backs it.

use std::fs::OpenOptions;
use std::path::Path;

use crate::failure::{Failure, TOOL, UNAVAILABLE};
use crate::options::AccelChoice;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Accel {
    Kvm,
    Tcg,
}

/// What the host says about KVM.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KvmFacts {
    /// Why `/dev/kvm` does not open; `None` when it does.
    pub device_error: Option<String>,
    pub has_amd: bool,
    pub has_intel: bool,
    pub has_paravirtual: bool,
}

impl KvmFacts {
    pub fn of_host() -> Self {
        let module = |name: &str| Path::new("/sys/module").join(name).is_dir();
        let opened = OpenOptions::new().read(true).write(true).open("/dev/kvm");
        KvmFacts {
            device_error: opened.err().map(|error| error.to_string()),
            has_amd: module("kvm_amd"),
            has_intel: module("kvm_intel"),
            has_paravirtual: module("kvm_pvm"),
        }
    }

    /// Why KVM cannot be used here at all.
    fn refusal(&self) -> Option<String> {
        let error = self.device_error.as_ref()?;
        Some(format!("/dev/kvm does not open: {}", error.split(" (os").next().unwrap_or(error).to_lowercase()))
    }

    /// Why KVM, which could be used, is not what one wants here.
    fn doubt(&self) -> Option<String> {
        if self.has_amd || self.has_intel {
            return None;
        }
        Some(if self.has_paravirtual {
            "/dev/kvm belongs to kvm_pvm, which interprets ordinary kernels and is slower than translation".into()
        } else {
            "neither kvm_amd nor kvm_intel is loaded behind /dev/kvm".into()
        })
    }
}

/// What was chosen.
pub struct Choice {
    pub accel: Accel,
    /// A sentence for `--verbose` that says why.
    pub why: String,
    /// What everybody is told: the choice was obeyed, and is not a good one.
    pub warning: Option<String>,
}

/// The accelerator to use. What was asked for by name is obeyed wherever it can be.
pub fn choose(choice: AccelChoice, icount: bool, facts: &KvmFacts) -> Result<Choice, Failure> {
    let choose = |accel, why: &str| Ok(Choice { accel, why: why.into(), warning: None });
    match (choice, icount) {
        (AccelChoice::Tcg, _) => choose(Accel::Tcg, "tcg, as asked for"),
        (AccelChoice::Auto, true) => choose(Accel::Tcg, "tcg, because --icount counts translated instructions"),
        (AccelChoice::Kvm, true) => Err(Failure::new(
            TOOL,
            "--icount cannot be used with --accel kvm",
            "leave out --accel: only tcg counts instructions",
        )),
        (AccelChoice::Auto, false) => match facts.refusal().or_else(|| facts.doubt()) {
            None => choose(Accel::Kvm, "kvm, backed by the processor"),
            Some(why) => choose(Accel::Tcg, &format!("tcg, because {why}")),
        },
        (AccelChoice::Kvm, false) => match facts.refusal() {
            None => Ok(Choice { accel: Accel::Kvm, why: "kvm, as asked for".into(), warning: facts.doubt() }),
            Some(why) => Err(Failure::new(
                UNAVAILABLE,
                format!("kvm cannot be used: {why}"),
                "leave out --accel, or use --accel tcg; where the device exists, joining group kvm gives access",
            )),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: KvmFacts = KvmFacts { device_error: None, has_amd: false, has_intel: true, has_paravirtual: false };

    fn auto(facts: &KvmFacts) -> Accel {
        choose(AccelChoice::Auto, false, facts).unwrap().accel
    }

    #[test]
    fn auto_takes_kvm_only_when_the_processor_backs_it() {
        assert_eq!(auto(&GOOD), Accel::Kvm);
        assert_eq!(auto(&KvmFacts { has_intel: false, has_amd: true, ..GOOD }), Accel::Kvm);
        assert_eq!(auto(&KvmFacts { has_intel: false, has_paravirtual: true, ..GOOD }), Accel::Tcg);
        assert_eq!(auto(&KvmFacts { has_intel: false, ..GOOD }), Accel::Tcg);
        assert_eq!(auto(&KvmFacts { device_error: Some("Permission denied".into()), ..GOOD }), Accel::Tcg);
    }

    #[test]
    fn kvm_that_was_asked_for_and_cannot_be_is_an_error_that_says_why() {
        let facts = KvmFacts { device_error: Some("Permission denied (os error 13)".into()), ..GOOD };
        let failure = choose(AccelChoice::Kvm, false, &facts).err().unwrap();
        assert_eq!(failure.status, UNAVAILABLE);
        assert!(failure.error.ends_with("/dev/kvm does not open: permission denied"), "{}", failure.error);
    }

    #[test]
    fn kvm_that_was_asked_for_is_obeyed_and_a_bad_one_is_warned_of() {
        let good = choose(AccelChoice::Kvm, false, &GOOD).unwrap();
        assert_eq!((good.accel, good.warning), (Accel::Kvm, None));
        for (has_paravirtual, named) in [(true, "kvm_pvm"), (false, "neither kvm_amd nor kvm_intel")] {
            let facts = KvmFacts { has_intel: false, has_paravirtual, ..GOOD };
            let choice = choose(AccelChoice::Kvm, false, &facts).unwrap();
            assert_eq!(choice.accel, Accel::Kvm);
            assert!(choice.warning.is_some_and(|warning| warning.contains(named)));
        }
    }

    #[test]
    fn counting_instructions_means_translation() {
        assert_eq!(choose(AccelChoice::Auto, true, &GOOD).unwrap().accel, Accel::Tcg);
        assert!(choose(AccelChoice::Kvm, true, &GOOD).is_err());
    }
}
