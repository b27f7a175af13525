//! Extended attributes.

use abi::Errno;

use super::small_volume;
use crate::file::attributes::Time;
use crate::file::credentials::Credentials;
use crate::file::extended::SetExtended;

#[test]
fn attributes_are_charged_to_their_volume_and_given_back() {
    let (volume, node) = small_volume(20);
    let who = Credentials::root();
    let set = |name: &[u8], bytes| node.set_extended(&who, name, &vec![7; bytes], SetExtended::Either, Time::default());
    let before = volume.numbers().nodes_free;
    assert_eq!(set(b"user.a", 3000), Ok(()));
    assert_eq!(volume.numbers().nodes_free, before - 3);
    assert_eq!(set(b"user.a", 60_000), Err(Errno::ENOSPC));
    assert_eq!(node.get_extended(&who, b"user.a", &mut []), Ok(3000));
    assert_eq!(set(b"user.a", 10), Ok(()));
    assert_eq!(volume.numbers().nodes_free, before - 1);
    assert_eq!(node.remove_extended(&who, b"user.a", Time::default()), Ok(()));
    assert_eq!(volume.numbers().nodes_free, before);
    assert_eq!(set(b"user.b", 2000), Ok(()));
    drop(node);
    assert_eq!(volume.numbers().nodes_free, before + 1);
}
