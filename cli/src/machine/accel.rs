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

    /// Why KVM is of no use here; `None` when it is.
    fn objection(&self) -> Option<String> {
        if let Some(error) = &self.device_error {
            return Some(format!(
                "/dev/kvm does not open: {}",
                error.split(" (os").next().unwrap_or(error).to_lowercase()
            ));
        }
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

/// The accelerator to use, and a sentence for `--verbose` that says why.
pub fn choose(choice: AccelChoice, icount: bool, facts: &KvmFacts) -> Result<(Accel, String), Failure> {
    match (choice, icount) {
        (AccelChoice::Tcg, _) => Ok((Accel::Tcg, "tcg, as asked for".into())),
        (AccelChoice::Auto, true) => Ok((Accel::Tcg, "tcg, because --icount counts translated instructions".into())),
        (AccelChoice::Kvm, true) => Err(Failure::new(
            TOOL,
            "--icount cannot be used with --accel kvm",
            "leave out --accel: only tcg counts instructions",
        )),
        (AccelChoice::Auto, false) => Ok(match facts.objection() {
            None => (Accel::Kvm, "kvm, backed by the processor".into()),
            Some(why) => (Accel::Tcg, format!("tcg, because {why}")),
        }),
        (AccelChoice::Kvm, false) => match facts.objection() {
            None => Ok((Accel::Kvm, "kvm, as asked for".into())),
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
        choose(AccelChoice::Auto, false, facts).unwrap().0
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
        let facts = KvmFacts { has_intel: false, has_paravirtual: true, ..GOOD };
        let failure = choose(AccelChoice::Kvm, false, &facts).unwrap_err();
        assert_eq!(failure.status, UNAVAILABLE);
        assert!(failure.error.contains("kvm_pvm"), "{}", failure.error);
    }

    #[test]
    fn counting_instructions_means_translation() {
        assert_eq!(choose(AccelChoice::Auto, true, &GOOD).unwrap().0, Accel::Tcg);
        assert!(choose(AccelChoice::Kvm, true, &GOOD).is_err());
    }
}
