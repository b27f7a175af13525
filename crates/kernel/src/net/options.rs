//! What programs set of a socket.

use machine::Nanos;

#[derive(Clone, Copy, Debug)]
pub struct Options {
    pub reuses_address: bool,
    pub reuses_port: bool,
    pub broadcasts: bool,
    pub keeps_alive: bool,
    pub is_quick: bool,
    pub is_corked: bool,
    /// A socket of IP 6 that hears nobody of IP 4.
    pub only_6: bool,
    pub out_of_band_inline: bool,
    /// Whether the receiver is told where a datagram came to, and its hops.
    pub tells_destination: bool,
    pub tells_hops: bool,
    /// Seconds that closing waits, if it was set.
    pub linger: Option<u32>,
    pub receive_timeout: Nanos,
    pub send_timeout: Nanos,
    /// What it was set to, doubled, as Linux does.
    pub receive_buffer: u32,
    pub send_buffer: u32,
    pub low_water: u32,
    pub priority: u32,
    pub mark: u32,
    /// 0: by all interfaces.
    pub interface: u32,
    pub hops: u8,
    pub multicast_hops: u8,
    pub service: u8,
    /// Seconds and count of questions whether the other side is there.
    pub keep_idle: u32,
    pub keep_interval: u32,
    pub keep_count: u32,
    /// Milliseconds.
    pub user_timeout: u32,
    pub defer_accept: u32,
    pub syn_count: u32,
    pub linger_2: u32,
    pub window_clamp: u32,
    pub max_segment: u32,
    pub user: u32,
}

impl Default for Options {
    fn default() -> Options {
        const BUFFER: u32 = 212_992;
        Options {
            reuses_address: false,
            reuses_port: false,
            broadcasts: false,
            keeps_alive: false,
            is_quick: false,
            is_corked: false,
            only_6: false,
            out_of_band_inline: false,
            tells_destination: false,
            tells_hops: false,
            linger: None,
            receive_timeout: Nanos(0),
            send_timeout: Nanos(0),
            receive_buffer: BUFFER,
            send_buffer: BUFFER,
            low_water: 1,
            priority: 0,
            mark: 0,
            interface: 0,
            hops: 64,
            multicast_hops: 1,
            service: 0,
            keep_idle: 7200,
            keep_interval: 75,
            keep_count: 9,
            user_timeout: 0,
            defer_accept: 0,
            syn_count: 6,
            linger_2: 60,
            window_clamp: 0,
            max_segment: 0,
            user: 0,
        }
    }
}
