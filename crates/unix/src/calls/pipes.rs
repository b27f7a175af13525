//! New pipes.

use alloc::sync::Arc;

use abi::Errno;
use abi::process::CAP_SYS_RESOURCE;
use kernel::pipe::Pipe;

use crate::call::Call;

/// A pipe of the default capacity; who has no privilege gets none that is larger than he may ask for. Error: `ENOMEM`.
pub fn new_pipe(call: &Call<'_>) -> Result<Arc<Pipe>, Errno> {
    let pipe = Pipe::new(call.unix.makers())?;
    let most = call.unix.families.tunables.pipe_bytes.get() as usize;
    if most < pipe.capacity() && !call.can(CAP_SYS_RESOURCE) {
        pipe.resize(most)?;
    }
    Ok(pipe)
}
