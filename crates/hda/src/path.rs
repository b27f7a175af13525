//! How samples reach a jack: a codec is a graph of widgets (7.1.2), each a node that lists the nodes it hears. Its pins are gone through,
//! those of lines first, back to the first converter.

use crate::Lost;
use crate::verb::{self, long, parameter, short};

/// Longest way from a pin to a converter, both counted.
const NODES_MOST: usize = 8;

/// What a widget says of itself (7.3.4.6).
#[derive(Clone, Copy)]
struct Widget(u32);

impl Widget {
    const CONVERTER: u32 = 0;
    const MIXER: u32 = 2;
    const PIN: u32 = 4;

    fn kind(self) -> u32 {
        self.0 >> 20 & 15
    }

    fn has(self, bit: u32) -> bool {
        self.0 >> bit & 1 != 0
    }

    fn is_stereo(self) -> bool {
        self.has(0)
    }

    fn has_input_amplifier(self) -> bool {
        self.has(1)
    }

    fn has_output_amplifier(self) -> bool {
        self.has(2)
    }

    fn has_own_amplifier_parameters(self) -> bool {
        self.has(3)
    }

    fn has_own_rates(self) -> bool {
        self.has(4)
    }

    fn has_connections(self) -> bool {
        self.has(8)
    }

    fn is_digital(self) -> bool {
        self.has(9)
    }
}

/// What a jack is for (7.3.3.31), in the order in which they are tried.
const JACKS: [u32; 3] = [0, 1, 2];
const HEADPHONES: u32 = 2;
/// Nothing is connected to the pin, and nothing can be.
const NO_JACK: u32 = 1;
/// A group of sound (7.3.4.4).
const SOUND_GROUP: u32 = 1;
/// A converter that takes samples of 16 bits (7.3.4.7).
const SIXTEEN_BITS: u32 = 1 << 17;
const PIN_CAN_OUT: u32 = 1 << 4;
const PIN_HAS_AMPLIFIER_POWER: u32 = 1 << 16;

/// Asks one codec.
pub struct Codec<'a> {
    pub ask: &'a mut dyn FnMut(u32) -> Result<u32, Lost>,
}

/// The converter at the end of a path that was opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Converter {
    pub node: u8,
    /// A bit for each rate (7.3.4.7).
    pub rates: u32,
}

/// A node on the way, and which of those it hears comes next.
#[derive(Clone, Copy, Default)]
struct Step {
    node: u8,
    input: u8,
}

/// The nodes from a pin on, to a converter.
#[derive(Default)]
struct Way {
    steps: [Step; NODES_MOST],
    count: usize,
}

impl Way {
    /// False: it is too long.
    fn push(&mut self, node: u8) -> bool {
        let Some(step) = self.steps.get_mut(self.count) else { return false };
        *step = Step { node, input: 0 };
        self.count += 1;
        true
    }
}

impl Codec<'_> {
    /// Opens the best way to a jack. Error: `NoOutput`; those of asking.
    pub fn open(&mut self) -> Result<Converter, Lost> {
        for group in self.subnodes(0)? {
            if self.parameter(group, parameter::GROUP_KIND)? & 0xFF == SOUND_GROUP {
                self.tell(group, verb::SET_POWER, 0)?;
                if let Some(converter) = self.open_group(group)? {
                    return Ok(converter);
                }
            }
        }
        Err(Lost::NoOutput)
    }

    fn open_group(&mut self, group: u8) -> Result<Option<Converter>, Lost> {
        for wanted in JACKS {
            for pin in self.subnodes(group)? {
                if self.jack(pin)? != Some(wanted) {
                    continue;
                }
                let mut way = Way::default();
                let mut seen = 0;
                if self.reaches_converter(group, pin, &mut way, &mut seen)? {
                    self.open_way(group, &way)?;
                    self.open_pin(pin, wanted == HEADPHONES)?;
                    let node = way.steps[way.count - 1].node;
                    return Ok(Some(Converter { node, rates: self.rates(group, node)? }));
                }
            }
        }
        Ok(None)
    }

    /// What a node is for, if it is a pin that can be heard.
    fn jack(&mut self, node: u8) -> Result<Option<u32>, Lost> {
        let widget = self.widget(node)?;
        if widget.kind() != Widget::PIN || widget.is_digital() {
            return Ok(None);
        }
        let configuration = (self.ask)(short(node, verb::CONFIGURATION, 0))?;
        let can_out = self.parameter(node, parameter::PIN)? & PIN_CAN_OUT != 0;
        Ok((can_out && configuration >> 30 != NO_JACK).then_some(configuration >> 20 & 15))
    }

    /// Goes back from `node`, to what it hears first; each node is looked at once. True: the way ends at a converter.
    fn reaches_converter(&mut self, group: u8, node: u8, way: &mut Way, seen: &mut u128) -> Result<bool, Lost> {
        if node > 127 || *seen >> node & 1 != 0 || !way.push(node) {
            return Ok(false);
        }
        *seen |= 1 << node;
        let (widget, own) = (self.widget(node)?, way.count - 1);
        if widget.kind() == Widget::CONVERTER {
            let takes = widget.is_stereo() && !widget.is_digital() && self.rates(group, node)? & SIXTEEN_BITS != 0;
            way.count -= usize::from(!takes);
            return Ok(takes);
        }
        if widget.has_connections() {
            for input in 0..self.connection_count(node)? {
                way.steps[own].input = input;
                let heard = self.connection(node, input)?;
                if self.reaches_converter(group, heard, way, seen)? {
                    return Ok(true);
                }
            }
        }
        way.count -= 1;
        Ok(false)
    }

    fn open_way(&mut self, group: u8, way: &Way) -> Result<(), Lost> {
        for step in &way.steps[..way.count] {
            let widget = self.widget(step.node)?;
            self.tell(step.node, verb::SET_POWER, 0)?;
            if widget.has_connections() && widget.kind() != Widget::MIXER {
                self.tell(step.node, verb::SELECT, step.input)?;
            }
            let owner = if widget.has_own_amplifier_parameters() { step.node } else { group };
            if widget.has_input_amplifier() {
                let gain = self.parameter(owner, parameter::AMPLIFIER_IN)?;
                self.set_gain(step.node, verb::GAIN_IN | u16::from(step.input & 15) << 8, gain)?;
            }
            if widget.has_output_amplifier() {
                let gain = self.parameter(owner, parameter::AMPLIFIER_OUT)?;
                self.set_gain(step.node, verb::GAIN_OUT, gain)?;
            }
        }
        Ok(())
    }

    /// Samples leave as they are: the step of 0 dB, which an amplifier names (7.3.4.10), and not muted.
    fn set_gain(&mut self, node: u8, which: u16, amplifier: u32) -> Result<(), Lost> {
        let payload = which | verb::GAIN_BOTH_SIDES | (amplifier & 0x7F) as u16;
        (self.ask)(long(node, verb::SET_GAIN, payload)).map(|_| ())
    }

    fn open_pin(&mut self, pin: u8, is_for_headphones: bool) -> Result<(), Lost> {
        if self.parameter(pin, parameter::PIN)? & PIN_HAS_AMPLIFIER_POWER != 0 {
            self.tell(pin, verb::SET_AMPLIFIER_POWER, verb::AMPLIFIER_IS_ON)?;
        }
        let amplifier = if is_for_headphones { verb::PIN_IS_FOR_HEADPHONES } else { 0 };
        self.tell(pin, verb::SET_PIN, verb::PIN_IS_OUT | amplifier)
    }

    fn rates(&mut self, group: u8, converter: u8) -> Result<u32, Lost> {
        let owner = if self.widget(converter)?.has_own_rates() { converter } else { group };
        self.parameter(owner, parameter::RATES)
    }

    fn widget(&mut self, node: u8) -> Result<Widget, Lost> {
        self.parameter(node, parameter::WIDGET).map(Widget)
    }

    /// A node's children; a codec has at most 127 nodes, whatever it says.
    fn subnodes(&mut self, node: u8) -> Result<core::ops::Range<u8>, Lost> {
        let found = self.parameter(node, parameter::SUBNODES)?;
        let (first, count) = ((found >> 16) as u8, found as u8);
        match first.checked_add(count) {
            Some(end) if end <= 128 && (first > node || count == 0) => Ok(first..end),
            _ => Err(Lost::Answer),
        }
    }

    fn connection_count(&mut self, node: u8) -> Result<u8, Lost> {
        Ok(self.parameter(node, parameter::CONNECTIONS)? as u8 & 0x7F)
    }

    /// The node behind an input. Lists come four entries at a time, or two where numbers are long (7.3.3.3); of a range only the ends
    /// are looked at.
    fn connection(&mut self, node: u8, input: u8) -> Result<u8, Lost> {
        let is_long = self.parameter(node, parameter::CONNECTIONS)? & 0x80 != 0;
        let at_once = if is_long { 2 } else { 4 };
        let entries = (self.ask)(short(node, verb::CONNECTIONS, input / at_once * at_once))?;
        let shift = u32::from(input % at_once) * if is_long { 16 } else { 8 };
        Ok((entries >> shift) as u8 & 0x7F)
    }

    fn parameter(&mut self, node: u8, parameter: u8) -> Result<u32, Lost> {
        (self.ask)(short(node, verb::PARAMETER, parameter))
    }

    fn tell(&mut self, node: u8, verb: u32, payload: u8) -> Result<(), Lost> {
        (self.ask)(short(node, verb, payload)).map(|_| ())
    }
}
