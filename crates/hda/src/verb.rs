//! Verbs (7.3.3) and parameters (7.3.4), as numbers behind a node's.

/// A verb of 12 bits with a payload of 8.
pub const fn short(node: u8, verb: u32, payload: u8) -> u32 {
    (node as u32) << 20 | verb << 8 | payload as u32
}

/// A verb of 4 bits with a payload of 16.
pub const fn long(node: u8, verb: u32, payload: u16) -> u32 {
    (node as u32) << 20 | verb << 16 | payload as u32
}

pub const SET_FORMAT: u32 = 0x2;
pub const SET_GAIN: u32 = 0x3;
pub const PARAMETER: u32 = 0xF00;
pub const CONNECTIONS: u32 = 0xF02;
pub const CONFIGURATION: u32 = 0xF1C;
pub const SELECT: u32 = 0x701;
pub const SET_POWER: u32 = 0x705;
pub const SET_STREAM: u32 = 0x706;
pub const SET_PIN: u32 = 0x707;
pub const SET_AMPLIFIER_POWER: u32 = 0x70C;

/// Pin control: output, and the amplifier for headphones (7.3.3.13).
pub const PIN_IS_OUT: u8 = 1 << 6;
pub const PIN_IS_FOR_HEADPHONES: u8 = 1 << 7;
/// 7.3.3.16.
pub const AMPLIFIER_IS_ON: u8 = 1 << 1;

/// Payload of `SET_GAIN` (7.3.3.7).
pub const GAIN_OUT: u16 = 1 << 15;
pub const GAIN_IN: u16 = 1 << 14;
pub const GAIN_BOTH_SIDES: u16 = 3 << 12;

pub mod parameter {
    pub const SUBNODES: u8 = 0x04;
    pub const GROUP_KIND: u8 = 0x05;
    pub const WIDGET: u8 = 0x09;
    pub const RATES: u8 = 0x0A;
    pub const PIN: u8 = 0x0C;
    pub const AMPLIFIER_IN: u8 = 0x0D;
    pub const CONNECTIONS: u8 = 0x0E;
    pub const AMPLIFIER_OUT: u8 = 0x12;
}
