//! Channels to nowhere: what comes in is planned, what goes out is kept, and the device takes its time.

use std::collections::BTreeMap;

use machine::{Channel, Nanos, Received};
use means::Random;

/// Bytes that may be on their way out of one channel.
const ROOM: usize = 512;

/// News of a device.
#[derive(Clone, Debug)]
pub enum News {
    /// Bytes arrive.
    Input(Channel, Vec<u8>),
    /// The other side closes.
    End(Channel),
    /// The device has taken so many bytes.
    Sent(Channel, usize),
}

#[derive(Default)]
struct Line {
    arrived: Vec<u8>,
    has_ended: bool,
    /// Bytes on their way out.
    leaving: usize,
    sent: Vec<u8>,
}

#[derive(Default)]
pub struct Channels {
    lines: BTreeMap<u8, Line>,
    /// By time and order of planning.
    news: BTreeMap<(Nanos, u64), News>,
    count: u64,
}

impl Channels {
    pub fn plan(&mut self, at: Nanos, news: News) {
        self.count += 1;
        self.news.insert((at, self.count), news);
    }

    pub fn next_news(&self) -> Option<Nanos> {
        self.news.first_key_value().map(|((at, _), _)| *at)
    }

    /// What has happened by `now`, made known to the lines.
    pub fn take_news(&mut self, now: Nanos) -> Option<News> {
        let first = self.news.first_entry()?;
        if first.key().0 > now {
            return None;
        }
        let news = first.remove();
        match &news {
            News::Input(channel, bytes) => self.line(*channel).arrived.extend_from_slice(bytes),
            News::End(channel) => self.line(*channel).has_ended = true,
            News::Sent(channel, bytes) => self.line(*channel).leaving -= bytes,
        }
        Some(news)
    }

    fn line(&mut self, channel: Channel) -> &mut Line {
        self.lines.entry(channel as u8).or_default()
    }

    pub fn send(&mut self, channel: Channel, bytes: &[u8], now: Nanos, random: &mut Random) -> usize {
        let line = self.line(channel);
        if channel == Channel::Control {
            line.sent.extend_from_slice(bytes);
            return bytes.len();
        }
        let count = bytes.len().min(ROOM - line.leaving);
        if count > 0 {
            line.leaving += count;
            line.sent.extend_from_slice(&bytes[..count]);
            self.plan(now.saturating_add(Nanos(1_000 + random.below(200_000))), News::Sent(channel, count));
        }
        count
    }

    pub fn sendable(&mut self, channel: Channel) -> usize {
        ROOM - self.line(channel).leaving
    }

    pub fn is_drained(&mut self, channel: Channel) -> bool {
        self.line(channel).leaving == 0
    }

    pub fn receive(&mut self, channel: Channel, into: &mut [u8]) -> Received {
        let line = self.line(channel);
        let count = into.len().min(line.arrived.len());
        if count == 0 {
            return if line.has_ended && line.arrived.is_empty() { Received::End } else { Received::Nothing };
        }
        into[..count].copy_from_slice(&line.arrived[..count]);
        line.arrived.drain(..count);
        Received::Bytes(count)
    }

    pub fn receivable(&mut self, channel: Channel) -> usize {
        self.line(channel).arrived.len()
    }

    pub fn sent(&mut self, channel: Channel) -> Vec<u8> {
        self.line(channel).sent.clone()
    }
}
