//! /sys: one processor, one memory node, no devices that programs could use.

use alloc::sync::Arc;

use kernel::file::VirtualDirectory;

use super::processor::{CacheFact, cache};
use super::system::node_meminfo;
use super::tree::{Entry, Table, Whole, file, table};
use crate::emulator::Unix;

machine::relies_on_one_processor!("/sys shows one");

/// A file that always says the same.
macro_rules! constant {
    ($name:literal, $text:literal) => {
        file($name, |_, _| Ok(concat!($text, "\n").into()))
    };
}

/// The directory of one cache.
macro_rules! cache_index {
    ($name:literal, $index:literal) => {
        table(
            $name,
            &[
                file("coherency_line_size", |_, _| cache($index, CacheFact::LineBytes)),
                constant!("id", "0"),
                file("level", |_, _| cache($index, CacheFact::Level)),
                file("number_of_sets", |_, _| cache($index, CacheFact::Sets)),
                file("physical_line_partition", |_, _| cache($index, CacheFact::Partitions)),
                constant!("shared_cpu_list", "0"),
                constant!("shared_cpu_map", "1"),
                file("size", |_, _| cache($index, CacheFact::Size)),
                file("type", |_, _| cache($index, CacheFact::Type)),
                file("ways_of_associativity", |_, _| cache($index, CacheFact::Ways)),
            ],
        )
    };
}

pub fn root(unix: &'static Unix) -> Arc<dyn VirtualDirectory> {
    Arc::new(Table { unix, subject: Whole, entries: ENTRIES })
}

const ENTRIES: &[Entry<Whole>] = &[
    table("block", &[]),
    table("bus", &[]),
    table("class", CLASSES),
    table("dev", &[table("block", &[]), table("char", &[])]),
    table("devices", &[table("system", SYSTEM), table("virtual", &[])]),
    table("firmware", &[]),
    table("fs", &[table("cgroup", &[])]),
    table("kernel", KERNEL),
    table("module", &[]),
    table("power", &[]),
];

const CLASSES: &[Entry<Whole>] = &[table("block", &[]), table("mtd", &[]), table("net", &[]), table("tty", &[])];

const KERNEL: &[Entry<Whole>] = &[
    table("debug", &[]),
    table(
        "mm",
        &[
            table("hugepages", &[]),
            table(
                "transparent_hugepage",
                &[
                    constant!("defrag", "always defer defer+madvise madvise [never]"),
                    constant!("enabled", "always madvise [never]"),
                    constant!("hpage_pmd_size", "2097152"),
                    constant!("shmem_enabled", "always within_size advise [never] deny force"),
                ],
            ),
        ],
    ),
    table("security", &[]),
];

const SYSTEM: &[Entry<Whole>] = &[
    table(
        "clocksource",
        &[table("clocksource0", &[constant!("available_clocksource", "tsc"), constant!("current_clocksource", "tsc")])],
    ),
    table("cpu", PROCESSORS),
    table("node", NODES),
];

const PROCESSORS: &[Entry<Whole>] = &[
    table(
        "cpu0",
        &[
            table(
                "cache",
                &[
                    cache_index!("index0", 0),
                    cache_index!("index1", 1),
                    cache_index!("index2", 2),
                    cache_index!("index3", 3),
                ],
            ),
            constant!("online", "1"),
            table("topology", TOPOLOGY),
        ],
    ),
    constant!("isolated", ""),
    constant!("kernel_max", "0"),
    constant!("offline", ""),
    constant!("online", "0"),
    constant!("possible", "0"),
    constant!("present", "0"),
];

const TOPOLOGY: &[Entry<Whole>] = &[
    constant!("core_cpus", "1"),
    constant!("core_cpus_list", "0"),
    constant!("core_id", "0"),
    constant!("core_siblings", "1"),
    constant!("core_siblings_list", "0"),
    constant!("die_id", "0"),
    constant!("package_cpus_list", "0"),
    constant!("physical_package_id", "0"),
    constant!("thread_siblings", "1"),
    constant!("thread_siblings_list", "0"),
];

const NODES: &[Entry<Whole>] = &[
    constant!("has_cpu", "0"),
    constant!("has_memory", "0"),
    constant!("has_normal_memory", "0"),
    table(
        "node0",
        &[
            constant!("cpulist", "0"),
            constant!("cpumap", "1"),
            constant!("distance", "10"),
            table("hugepages", &[]),
            file("meminfo", node_meminfo),
            constant!(
                "numastat",
                "numa_hit 0\nnuma_miss 0\nnuma_foreign 0\ninterleave_hit 0\nlocal_node 0\nother_node 0"
            ),
        ],
    ),
    constant!("online", "0"),
    constant!("possible", "0"),
];
