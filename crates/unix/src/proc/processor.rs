//! The processor, as CPUID describes it (SDM vol. 2A, AMD APM vol. 3 appendix E).
#![expect(clippy::disallowed_methods, clippy::disallowed_macros, reason = "always the same few lines")]

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::arch::x86_64::{__cpuid, __cpuid_count, CpuidResult};
use core::fmt::Write;

use abi::Errno;

use super::tree::Whole;
use crate::emulator::Unix;

/// Names of the 32 feature bits, bit 0 first; `-` is a bit that is not shown.
type Names = &'static str;

const LEAF_1_EDX: Names = "\
    fpu vme de pse tsc msr pae mce cx8 apic - sep mtrr pge mca cmov pat pse36 pn clflush - dts acpi mmx fxsr \
    sse sse2 ss ht tm ia64 pbe";
const LEAF_1_ECX: Names = "\
    pni pclmulqdq dtes64 monitor ds_cpl vmx smx est tm2 ssse3 cid sdbg fma cx16 xtpr pdcm - pcid dca sse4_1 \
    sse4_2 x2apic movbe popcnt tsc_deadline_timer aes xsave - avx f16c rdrand hypervisor";
const EXTENDED_1_EDX: Names = "\
    - - - - - - - - - - - syscall - - - - - - - mp nx - mmxext - - fxsr_opt pdpe1gb rdtscp - lm 3dnowext 3dnow";
const EXTENDED_1_ECX: Names = "\
    lahf_lm cmp_legacy svm extapic cr8_legacy abm sse4a misalignsse 3dnowprefetch osvw ibs xop skinit wdt - lwp \
    fma4 tce - nodeid_msr - tbm topoext perfctr_core perfctr_nb - bpext ptsc perfctr_llc mwaitx - -";
const LEAF_7_EBX: Names = "\
    fsgsbase tsc_adjust sgx bmi1 hle avx2 - smep bmi2 erms invpcid rtm cqm - mpx rdt_a avx512f avx512dq rdseed \
    adx smap avx512ifma - clflushopt clwb intel_pt avx512pf avx512er avx512cd sha_ni avx512bw avx512vl";

const EXTENDED: u32 = 0x8000_0000;

/// A leaf, all zero where the processor has none.
fn leaf(number: u32) -> CpuidResult {
    let highest = __cpuid(number & EXTENDED).eax;
    if number <= highest { __cpuid(number) } else { CpuidResult { eax: 0, ebx: 0, ecx: 0, edx: 0 } }
}

fn name_features(text: &mut String, bits: u32, names: Names) {
    let named = names.split(' ').enumerate().filter(|(bit, name)| bits & 1 << bit != 0 && *name != "-");
    named.for_each(|(_, name)| {
        text.push(' ');
        text.push_str(name);
    });
}

fn features() -> String {
    let (basic, extended) = (leaf(1), leaf(EXTENDED + 1));
    let mut text = String::new();
    name_features(&mut text, basic.edx, LEAF_1_EDX);
    name_features(&mut text, extended.edx, EXTENDED_1_EDX);
    name_features(&mut text, basic.ecx, LEAF_1_ECX);
    name_features(&mut text, extended.ecx, EXTENDED_1_ECX);
    name_features(&mut text, leaf(7).ebx, LEAF_7_EBX);
    text
}

fn text_of(registers: &[u32]) -> String {
    let bytes: Vec<u8> = registers.iter().flat_map(|register| register.to_le_bytes()).collect();
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from(String::from_utf8_lossy(&bytes[..end]).trim())
}

fn model_name() -> String {
    let registers: Vec<u32> =
        (2..=4).map(|index| leaf(EXTENDED + index)).flat_map(|part| [part.eax, part.ebx, part.ecx, part.edx]).collect();
    let name = text_of(&registers);
    if name.is_empty() { String::from("unknown") } else { name }
}

/// Family, model and stepping, extensions added in.
fn signature() -> (u32, u32, u32) {
    let word = leaf(1).eax;
    let (family, model) = (word >> 8 & 15, word >> 4 & 15);
    let extended_model = word >> 16 & 15;
    let whole = if family == 15 { family + (word >> 20 & 255) } else { family };
    let model = if family == 6 || family == 15 { model | extended_model << 4 } else { model };
    (whole, model, word & 15)
}

/// Counter ticks a second, in thousands, from the scale of the programs' time page; 0 if it has none.
fn kilohertz(unix: &Unix) -> u64 {
    let Some([time, _]) = unix.vdso_pages.borrow().clone() else { return 0 };
    let mut scale = [0; 8];
    time.read(core::mem::offset_of!(vdso::TimePage, mult), &mut scale);
    let scale = u64::from_le_bytes(scale);
    (1_000_000u64 << 32).checked_div(scale).unwrap_or(0)
}

pub fn cpuinfo(unix: &'static Unix, _: &Whole) -> Result<Vec<u8>, Errno> {
    let vendor = leaf(0);
    let (family, model, stepping) = signature();
    let khz = kilohertz(unix);
    let line = leaf(1).ebx >> 8 & 255;
    let sizes = leaf(EXTENDED + 8).eax;
    let mut text = String::new();
    let _ = writeln!(text, "processor\t: 0\nvendor_id\t: {}", text_of(&[vendor.ebx, vendor.edx, vendor.ecx]));
    let _ = writeln!(text, "cpu family\t: {family}\nmodel\t\t: {model}\nmodel name\t: {}", model_name());
    let _ = writeln!(text, "stepping\t: {stepping}\ncpu MHz\t\t: {}.{:03}", khz / 1000, khz % 1000);
    let _ = writeln!(text, "cache size\t: {} KB", leaf(EXTENDED + 6).ecx >> 16);
    text.push_str(
        "physical id\t: 0\nsiblings\t: 1\ncore id\t\t: 0\ncpu cores\t: 1\napicid\t\t: 0\ninitial apicid\t: 0\n",
    );
    let _ = writeln!(text, "fpu\t\t: yes\nfpu_exception\t: yes\ncpuid level\t: {}\nwp\t\t: yes", vendor.eax);
    let _ = writeln!(text, "flags\t\t:{}\nbugs\t\t:", features());
    let _ = writeln!(text, "bogomips\t: {}.{:02}", khz / 500, khz / 5 % 100);
    let _ = writeln!(text, "clflush size\t: {}\ncache_alignment\t: {0}", line * 8);
    let _ = writeln!(text, "address sizes\t: {} bits physical, {} bits virtual", sizes & 255, sizes >> 8 & 255);
    text.push_str("power management:\n\n");
    Ok(text.into_bytes())
}

/// One cache of the processor.
#[derive(Clone, Copy)]
pub struct Cache {
    kind: u32,
    level: u32,
    ways: u32,
    partitions: u32,
    line_bytes: u32,
    sets: u32,
}

/// What is asked of a cache.
#[derive(Clone, Copy)]
pub enum CacheFact {
    Type,
    Level,
    Size,
    LineBytes,
    Ways,
    Sets,
    Partitions,
}

impl Cache {
    /// Cache `index` of the deterministic cache leaf: 4 on Intel's processors, 0x8000001D on AMD's.
    fn find(index: u32) -> Option<Cache> {
        let numbers = [4, EXTENDED + 0x1D];
        let Some(number) = numbers.into_iter().find(|number| leaf(*number).eax & 31 != 0) else {
            return Cache::find_old(index);
        };
        let part = __cpuid_count(number, index);
        (part.eax & 31 != 0).then_some(Cache {
            kind: part.eax & 31,
            level: part.eax >> 5 & 7,
            ways: (part.ebx >> 22 & 0x3FF) + 1,
            partitions: (part.ebx >> 12 & 0x3FF) + 1,
            line_bytes: (part.ebx & 0xFFF) + 1,
            sets: part.ecx.saturating_add(1),
        })
    }

    /// Cache `index` as AMD's older leaves 0x80000005 and 0x80000006 tell it.
    fn find_old(index: u32) -> Option<Cache> {
        let (first, others) = (leaf(EXTENDED + 5), leaf(EXTENDED + 6));
        let (kind, level, kilobytes, ways, line_bytes) = match index {
            0 => (1, 1, first.ecx >> 24, first.ecx >> 16 & 255, first.ecx & 255),
            1 => (2, 1, first.edx >> 24, first.edx >> 16 & 255, first.edx & 255),
            2 => (3, 2, others.ecx >> 16, old_ways(others.ecx), others.ecx & 255),
            3 => (3, 3, (others.edx >> 18) * 512, old_ways(others.edx), others.edx & 255),
            _ => return None,
        };
        let set_bytes = ways * line_bytes;
        let sets = (kilobytes * 1024).checked_div(set_bytes).filter(|sets| *sets > 0)?;
        Some(Cache { kind, level, ways, partitions: 1, line_bytes, sets })
    }

    fn kilobytes(&self) -> u64 {
        [self.ways, self.partitions, self.line_bytes, self.sets].iter().map(|part| u64::from(*part)).product::<u64>()
            / 1024
    }
}

/// Associativity in bits 12 to 15 of the older cache leaves, 0 for none.
fn old_ways(register: u32) -> u32 {
    const WAYS: [u32; 16] = [0, 1, 2, 3, 4, 6, 8, 0, 16, 0, 32, 48, 64, 96, 128, 0];
    WAYS[(register >> 12 & 15) as usize]
}

/// The content of a file of `/sys/devices/system/cpu/cpu0/cache/indexN`. Error: `ENOENT` without such a cache.
pub fn cache(index: u32, fact: CacheFact) -> Result<Vec<u8>, Errno> {
    let cache = Cache::find(index).ok_or(Errno::ENOENT)?;
    let text = match fact {
        CacheFact::Type => String::from(match cache.kind {
            1 => "Data",
            2 => "Instruction",
            _ => "Unified",
        }),
        CacheFact::Level => format!("{}", cache.level),
        CacheFact::Size => format!("{}K", cache.kilobytes()),
        CacheFact::LineBytes => format!("{}", cache.line_bytes),
        CacheFact::Ways => format!("{}", cache.ways),
        CacheFact::Sets => format!("{}", cache.sets),
        CacheFact::Partitions => format!("{}", cache.partitions),
    };
    Ok((text + "\n").into_bytes())
}
