//! How a device is started (virtio 1.2, 3.1.1).

use crate::{Transport, feature};

const ACKNOWLEDGE: u8 = 1;
const DRIVER: u8 = 2;
const DRIVER_OK: u8 = 4;
const FEATURES_OK: u8 = 8;
const FAILED: u8 = 128;

/// Looks at a device that resets before it is given up.
const RESET_LOOKS: usize = 100_000;

/// Why a device is not driven.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StartError {
    /// It does not come back from its reset.
    Silent,
    /// It is one of before version 1, or does not take what it offered.
    Features,
    /// It lacks a queue that its kind must have.
    NoQueue,
    NoMemory,
}

/// Resets the device, agrees on those of `wanted` that it offers, has `install` make its queues with them, and lets it go.
pub fn start<T: Transport, Q>(
    transport: &T,
    wanted: u64,
    install: impl FnOnce(&T, u64) -> Result<Q, StartError>,
) -> Result<Q, StartError> {
    transport.set_status(0);
    if (0..RESET_LOOKS).all(|_| transport.status() != 0) {
        return Err(StartError::Silent);
    }
    transport.set_status(ACKNOWLEDGE);
    transport.set_status(ACKNOWLEDGE | DRIVER);
    let started = agree(transport, wanted).and_then(|features| install(transport, features));
    transport.set_status(match started {
        Ok(_) => ACKNOWLEDGE | DRIVER | FEATURES_OK | DRIVER_OK,
        Err(_) => FAILED,
    });
    started
}

fn agree(transport: &impl Transport, wanted: u64) -> Result<u64, StartError> {
    let features = transport.device_features() & (wanted | feature::VERSION_1);
    if features & feature::VERSION_1 == 0 {
        return Err(StartError::Features);
    }
    transport.accept_features(features);
    transport.set_status(ACKNOWLEDGE | DRIVER | FEATURES_OK);
    if transport.status() & FEATURES_OK == 0 { Err(StartError::Features) } else { Ok(features) }
}
