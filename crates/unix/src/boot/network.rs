//! How the link gets its addresses: as the tool says.

use alloc::vec::Vec;
use core::net::IpAddr;
use core::str::FromStr;

use kernel::net::Plan;

/// The configuration's words: `dhcp`, `ADDRESS/LENGTH`, and `via ADDRESS` for who knows the way to all others, with commas between.
/// What is not understood is left out: the link is there then, without an address.
pub fn plan(text: &[u8]) -> Plan {
    let (mut addresses, mut gateways, mut dhcp) = (Vec::new(), Vec::new(), false);
    for word in core::str::from_utf8(text).unwrap_or("").split(',').map(str::trim) {
        if let Some(gateway) = word.strip_prefix("via ") {
            gateways.extend(IpAddr::from_str(gateway));
        } else if word == "dhcp" {
            dhcp = true;
        } else if let Some((address, length)) = word.split_once('/') {
            let parsed = IpAddr::from_str(address).ok().zip(length.parse().ok());
            addresses.extend(parsed);
        }
    }
    Plan { addresses, gateways, dhcp }
}
