//! The link as smoltcp sees it: with one frame that has come, or none.

use machine::{Link, SumPlace};
use smoltcp::phy::{Checksum, Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::time::Instant;
use smoltcp::wire::{
    EthernetFrame, EthernetProtocol, IpAddress, IpProtocol, Ipv4Packet, Ipv6Packet, TcpPacket, TcpSeqNumber,
};

use crate::manner::Marks;

/// The longest frame that is sent.
pub const FRAME_BYTES_MAX: usize = 1514;
pub const ETHERNET_BYTES: usize = 14;

pub struct Port<'a> {
    pub link: &'a dyn Link,
    pub incoming: Option<&'a [u8]>,
    /// Where frames are made.
    pub scratch: &'a mut [u8; FRAME_BYTES_MAX],
    /// Packets that were sent, questions for neighbours not counted.
    pub sent: usize,
    /// Those counted, too.
    pub frames: usize,
    /// A packet did not find room.
    pub is_full: bool,
    /// Behind the last number that the connection has sent, if it is for one.
    pub sent_to: Option<&'a mut Option<TcpSeqNumber>>,
    pub marks: Marks,
}

/// What the link can do. Sums of what comes are looked at before smoltcp sees it, but those of ICMP and of headers.
pub fn capabilities(link: &dyn Link) -> DeviceCapabilities {
    let mut capabilities = DeviceCapabilities::default();
    capabilities.medium = Medium::Ethernet;
    capabilities.max_transmission_unit = (usize::from(link.mtu()) + ETHERNET_BYTES).min(FRAME_BYTES_MAX);
    capabilities.checksum.tcp = if link.sums() { Checksum::None } else { Checksum::Tx };
    capabilities.checksum.udp = Checksum::Tx;
    capabilities
}

pub struct Coming<'a>(&'a [u8]);

impl RxToken for Coming<'_> {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, f: F) -> R {
        f(self.0)
    }
}

pub struct Going<'a> {
    link: &'a dyn Link,
    scratch: &'a mut [u8; FRAME_BYTES_MAX],
    sent: &'a mut usize,
    frames: &'a mut usize,
    sent_to: Option<&'a mut Option<TcpSeqNumber>>,
    marks: Marks,
}

impl TxToken for Going<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, len: usize, f: F) -> R {
        let Some(frame) = self.scratch.get_mut(..len) else {
            // Longer than it may be: smoltcp asks for no such frame, and it would not be sent.
            let mut nowhere = machine::try_filled(0, len).unwrap_or_default();
            return f(&mut nowhere);
        };
        frame.fill(0);
        let result = f(frame);
        if let Some(sent_to) = self.sent_to {
            // What is not for a connection that is known stays as it is.
            let _ = correct_number(frame, sent_to, !self.link.sums());
        }
        // What is no packet of IP has none.
        let _ = self.marks.put(frame);
        let is_packet = EthernetFrame::new_unchecked(&*frame).ethertype() != EthernetProtocol::Arp;
        let sum = if self.link.sums() { prepare_sum(frame) } else { None };
        if self.link.send(frame, sum) {
            *self.frames += 1;
            *self.sent += usize::from(is_packet);
        }
        result
    }
}

/// Gives an empty acknowledgement the number behind all that was sent. smoltcp gives it the number from which it repeats: then
/// both sides, when both repeat, find each other's acknowledgements outside of their windows and never hear them.
fn correct_number(frame: &mut [u8], sent_to: &mut Option<TcpSeqNumber>, sums: bool) -> Option<()> {
    let ethertype = EthernetFrame::new_checked(&*frame).ok()?.ethertype();
    let packet = &mut frame[ETHERNET_BYTES..];
    let (from, to, start): (IpAddress, IpAddress, usize) = match ethertype {
        EthernetProtocol::Ipv4 => {
            let packet = Ipv4Packet::new_checked(&*packet).ok()?;
            (packet.next_header() == IpProtocol::Tcp).then_some(())?;
            (packet.src_addr().into(), packet.dst_addr().into(), packet.header_len().into())
        }
        EthernetProtocol::Ipv6 => {
            let packet = Ipv6Packet::new_checked(&*packet).ok()?;
            (packet.next_header() == IpProtocol::Tcp).then_some(())?;
            (packet.src_addr().into(), packet.dst_addr().into(), packet.header_len())
        }
        _ => return None,
    };
    let mut segment = TcpPacket::new_checked(packet.get_mut(start..)?).ok()?;
    let (first, length) = (segment.seq_number(), segment.segment_len());
    if segment.rst() {
        return None;
    }
    let behind = first + length;
    match sent_to {
        Some(last) if length == 0 && first < *last => {
            segment.set_seq_number(*last);
            if sums {
                segment.fill_checksum(&from, &to);
            }
        }
        Some(last) if behind > *last => *last = behind,
        None => *sent_to = Some(behind),
        Some(_) => {}
    }
    Some(())
}

/// Where the device fills in the sum of a segment, whose field has that of the pseudo header (virtio 1.2, 5.1.6.2).
fn prepare_sum(frame: &mut [u8]) -> Option<SumPlace> {
    let ethertype = EthernetFrame::new_checked(&*frame).ok()?.ethertype();
    let packet = &frame[ETHERNET_BYTES..];
    let (header, length, addresses) = match ethertype {
        EthernetProtocol::Ipv4 => {
            let packet = Ipv4Packet::new_checked(packet).ok()?;
            let header = usize::from(packet.header_len());
            (packet.next_header() == IpProtocol::Tcp).then_some(())?;
            (header, usize::from(packet.total_len()).checked_sub(header)?, 12..20)
        }
        EthernetProtocol::Ipv6 => {
            let packet = Ipv6Packet::new_checked(packet).ok()?;
            (packet.next_header() == IpProtocol::Tcp).then_some(())?;
            (packet.header_len(), packet.payload_len().into(), 8..40)
        }
        _ => return None,
    };
    let words = packet.get(addresses)?.chunks_exact(2).map(|two| u32::from(two[0]) << 8 | u32::from(two[1]));
    let mut sum = words.sum::<u32>() + u32::from(u8::from(IpProtocol::Tcp)) + length as u32;
    while sum >> 16 != 0 {
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    let start = ETHERNET_BYTES + header;
    const SUM_OF_TCP: usize = 16;
    frame.get_mut(start + SUM_OF_TCP..start + SUM_OF_TCP + 2)?.copy_from_slice(&(sum as u16).to_be_bytes());
    Some(SumPlace { start: start as u16, offset: SUM_OF_TCP as u16 })
}

impl<'a> Port<'a> {
    pub fn new(link: &'a dyn Link, scratch: &'a mut [u8; FRAME_BYTES_MAX]) -> Port<'a> {
        Port {
            link,
            incoming: None,
            scratch,
            sent: 0,
            frames: 0,
            is_full: false,
            sent_to: None,
            marks: Marks::default(),
        }
    }

    fn going(&mut self) -> Going<'_> {
        let (sent_to, marks) = (self.sent_to.as_deref_mut(), self.marks);
        Going { link: self.link, scratch: self.scratch, sent: &mut self.sent, frames: &mut self.frames, sent_to, marks }
    }
}

impl Device for Port<'_> {
    type RxToken<'a>
        = Coming<'a>
    where
        Self: 'a;
    type TxToken<'a>
        = Going<'a>
    where
        Self: 'a;

    /// An answer that finds no room is lost, as on the wire.
    fn receive(&mut self, _: Instant) -> Option<(Coming<'_>, Going<'_>)> {
        let frame = self.incoming.take()?;
        Some((Coming(frame), self.going()))
    }

    fn transmit(&mut self, _: Instant) -> Option<Going<'_>> {
        if self.link.has_room() {
            Some(self.going())
        } else {
            self.is_full = true;
            None
        }
    }

    fn capabilities(&self) -> DeviceCapabilities {
        capabilities(self.link)
    }
}
