//! The virtual machine's network: what QEMU serves, and what the kernel and its programs are told of it.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::str::FromStr;

use super::qemu::doubled_commas;

/// Where frames go.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Wire {
    /// No device at all.
    None,
    /// QEMU's own network: what programs connect to is reached in the name of this process, and they are reached by ports of the host.
    User,
    /// An interface of the host.
    Tap(String),
}

impl FromStr for Wire {
    type Err = String;

    fn from_str(text: &str) -> Result<Wire, String> {
        match text.split_once(':') {
            None if text == "none" => Ok(Wire::None),
            None if text == "user" => Ok(Wire::User),
            Some(("tap", name)) if !name.is_empty() && !name.contains(',') => Ok(Wire::Tap(name.to_string())),
            _ => Err("expected user, none or tap:NAME".into()),
        }
    }
}

/// A port of the host that leads to one of the machine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Forward {
    /// An address of the host, or nothing for all.
    pub host: String,
    pub host_port: u16,
    pub port: u16,
    pub is_udp: bool,
}

impl FromStr for Forward {
    type Err = String;

    /// `[HOST:]PORT:PORT[/udp]`, as docker has it.
    fn from_str(text: &str) -> Result<Forward, String> {
        let (ports, protocol) = text.split_once('/').unwrap_or((text, "tcp"));
        let is_udp = match protocol {
            "tcp" => false,
            "udp" => true,
            _ => return Err(format!("{protocol} is neither tcp nor udp")),
        };
        let number = |port: &str| match port.parse::<u16>() {
            Ok(port) if port > 0 => Ok(port),
            _ => Err(format!("{port} is no port")),
        };
        let Some((rest, port)) = ports.rsplit_once(':') else {
            return Err("expected [HOST:]PORT:PORT, with /udp behind it for datagrams".into());
        };
        let (host, host_port) = rest.rsplit_once(':').unwrap_or(("", rest));
        let is_address = host.is_empty() || host.parse::<std::net::Ipv4Addr>().is_ok();
        if !is_address {
            return Err(format!("{host} is no address of IP 4"));
        }
        Ok(Forward { host: host.to_string(), host_port: number(host_port)?, port: number(port)?, is_udp })
    }
}

/// The whole.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Network {
    pub wire: Wire,
    pub forwards: Vec<Forward>,
    /// Where all frames are written, for those who look at them later.
    pub capture: Option<PathBuf>,
}

/// QEMU's network is always the same: the machine, its router, and who knows names (`-netdev user`).
const USER_ADDRESSES: &str = "10.0.2.15/24,via 10.0.2.2";
const USER_RESOLVER: &str = "nameserver 10.0.2.3\n";

impl Network {
    /// How the kernel's link gets its addresses. Those that are always the same are not asked for.
    pub fn addresses(&self) -> &'static str {
        match self.wire {
            Wire::None => "",
            Wire::User => USER_ADDRESSES,
            Wire::Tap(_) => "dhcp",
        }
    }

    /// The machine's `/etc/resolv.conf`: as the host's, but for who is asked.
    pub fn resolv_conf(&self, host: &str) -> String {
        match self.wire {
            Wire::None => String::new(),
            Wire::Tap(_) => host.to_string(),
            Wire::User => {
                let is_other =
                    |line: &&str| ["search ", "domain ", "options "].iter().any(|word| line.starts_with(word));
                let others: String = host.lines().filter(is_other).map(|line| format!("{line}\n")).collect();
                format!("{USER_RESOLVER}{others}")
            }
        }
    }

    /// QEMU's words for it.
    pub fn arguments(&self) -> Vec<OsString> {
        let mut server: OsString = match &self.wire {
            Wire::None => return Vec::new(),
            Wire::Tap(name) => format!("tap,id=net,ifname={name},script=no,downscript=no").into(),
            Wire::User => "user,id=net".into(),
        };
        for Forward { host, host_port, port, is_udp } in &self.forwards {
            let protocol = if *is_udp { "udp" } else { "tcp" };
            server.push(format!(",hostfwd={protocol}:{host}:{host_port}-:{port}"));
        }
        let mut line: Vec<OsString> = vec!["-netdev".into(), server];
        line.extend(["-device".into(), "virtio-net-device,netdev=net".into()]);
        if let Some(file) = &self.capture {
            let mut dump: OsString = "filter-dump,id=dump,netdev=net,file=".into();
            dump.push(std::ffi::OsStr::from_bytes(&doubled_commas(file.as_os_str().as_bytes())));
            line.extend(["-object".into(), dump]);
        }
        line
    }
}

/// The machine's `/etc/hosts`: itself, and those that the host's names beside itself.
pub fn hosts(host: &str) -> String {
    const OWN: &str = "127.0.0.1\tlocalhost synthesis\n::1\tlocalhost ip6-localhost ip6-loopback\n";
    let is_other = |line: &&str| {
        let address = line.split_whitespace().next().unwrap_or("#");
        address.parse::<std::net::IpAddr>().is_ok_and(|address| !address.is_loopback())
    };
    let others: String = host.lines().filter(is_other).map(|line| format!("{line}\n")).collect();
    format!("{OWN}{others}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(network: &Network) -> String {
        network.arguments().iter().map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn ports_are_written_as_docker_has_them() {
        let forward = |text: &str| text.parse::<Forward>();
        let all = Forward { host: String::new(), host_port: 8080, port: 80, is_udp: false };
        assert_eq!(forward("8080:80"), Ok(all.clone()));
        assert_eq!(forward("8080:80/udp"), Ok(Forward { is_udp: true, ..all.clone() }));
        assert_eq!(forward("127.0.0.1:8080:80/tcp"), Ok(Forward { host: "127.0.0.1".into(), ..all }));
        for bad in ["80", "", "a:b", "0:80", "80:0", "70000:1", "host:80:80", "80:80/sctp", "1,2:3"] {
            assert!(forward(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_wire_is_one_of_three() {
        assert_eq!(("user".parse(), "none".parse()), (Ok(Wire::User), Ok(Wire::None)));
        assert_eq!("tap:tap0".parse(), Ok(Wire::Tap("tap0".into())));
        for bad in ["", "tap", "tap:", "bridge", "tap:a,b"] {
            assert!(bad.parse::<Wire>().is_err(), "{bad}");
        }
    }

    #[test]
    fn the_monitor_is_told_what_leads_where() {
        let forwards = vec!["127.0.0.1:5000:80".parse().unwrap(), "53:53/udp".parse().unwrap()];
        let network = Network { wire: Wire::User, forwards, capture: Some("/a,b".into()) };
        let words = words(&network);
        assert!(words.contains("user,id=net,hostfwd=tcp:127.0.0.1:5000-:80,hostfwd=udp::53-:53 "), "{words}");
        assert!(words.ends_with("filter-dump,id=dump,netdev=net,file=/a,,b"), "{words}");
        let none = Network { wire: Wire::None, forwards: Vec::new(), capture: None };
        assert_eq!((none.arguments().len(), none.addresses()), (0, ""));
    }

    #[test]
    fn names_are_asked_for_where_the_wire_leads() {
        let host = "nameserver 192.168.1.1\nsearch example.org\n# nothing\n";
        let network = |wire| Network { wire, forwards: Vec::new(), capture: None };
        assert_eq!(network(Wire::User).resolv_conf(host), "nameserver 10.0.2.3\nsearch example.org\n");
        assert_eq!(network(Wire::Tap("t".into())).resolv_conf(host), host);
        let hosts = hosts("127.0.0.1 localhost\n::1 localhost\n10.1.2.3 far\n# x\n");
        assert!(hosts.ends_with("10.1.2.3 far\n") && hosts.lines().count() == 3, "{hosts}");
    }
}
