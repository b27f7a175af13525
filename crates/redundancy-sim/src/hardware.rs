//! What the machines of a time can do.

/// Latencies in seconds, bandwidths in bytes per second.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Hardware {
    pub name: &'static str,
    pub memory_latency: f64,
    pub memory_bandwidth: f64,
    /// Request and answer without the bytes.
    pub network_latency: f64,
    /// Of each node's line.
    pub network_bandwidth: f64,
    pub disk_latency: f64,
    /// Of a write to a log.
    pub disk_write_latency: f64,
    pub disk_bandwidth: f64,
    /// Accesses of a node per second, at which a plain cache keeps disks busy for a third of the time or so.
    pub accesses: f64,
}

impl Hardware {
    /// Workstations of 1989: kernel calls between machines and bulk transfers as M. Nelson, B. Welch, J. Ousterhout measured
    /// them in Sprite (*Caching in the Sprite Network File System*, 1988: 2 ms a call, Ethernet at 10 Mbit/s of which a node
    /// gets some 0.8 MB/s); a disk with 17 ms of seek and 8.3 of rotation, 1.5 MB/s; memory as in a 68020 at 16 MHz.
    pub const IN_1989: Hardware = Hardware {
        name: "1989",
        memory_latency: 100e-6,
        memory_bandwidth: 10e6,
        network_latency: 2e-3,
        network_bandwidth: 0.8e6,
        disk_latency: 25e-3,
        disk_write_latency: 8e-3,
        disk_bandwidth: 1.5e6,
        accesses: 4.0,
    };

    /// Servers of today: 0.1 µs and 10 GB/s of one core's memory; 2.5 µs and 100 Gbit/s by RDMA (A. Kalia, M. Kaminsky,
    /// D. Andersen: *Design Guidelines for High Performance RDMA Systems*, 2016, give 2 to 3 µs); a flash disk by NVMe with 80 µs
    /// for a random read of one page, 15 for a write to its buffer, 3 GB/s.
    pub const TODAY: Hardware = Hardware {
        name: "today",
        memory_latency: 0.1e-6,
        memory_bandwidth: 10e9,
        network_latency: 2.5e-6,
        network_bandwidth: 12.5e9,
        disk_latency: 80e-6,
        disk_write_latency: 15e-6,
        disk_bandwidth: 3e9,
        accesses: 3000.0,
    };

    pub fn local(&self, bytes: u32) -> f64 {
        self.memory_latency + f64::from(bytes) / self.memory_bandwidth
    }

    /// How long bytes occupy a line.
    pub fn transfer(&self, bytes: u32) -> f64 {
        f64::from(bytes) / self.network_bandwidth
    }

    pub fn remote(&self, bytes: u32) -> f64 {
        self.network_latency + self.transfer(bytes)
    }

    /// How long a read occupies a disk.
    pub fn disk_read(&self, bytes: u32) -> f64 {
        self.disk_latency + f64::from(bytes) / self.disk_bandwidth
    }

    pub fn disk_write(&self, bytes: u32) -> f64 {
        self.disk_write_latency + f64::from(bytes) / self.disk_bandwidth
    }

    /// What a failed attempt counts as: a hundred reads of a disk.
    pub fn failure_seconds(&self) -> f64 {
        100.0 * self.disk_latency
    }
}
