# For gdb at the hosted machine: gdb IMAGE -p PID -x bin/hosted/synthesis.gdb (synth run --hosted --gdb prints the whole command).
# Names of synthesized code come by themselves; the program's own: add-symbol-file PROGRAM (for a library: with its address).

# How the program's calls, first touches and the timer reach the machine.
handle SIGSYS SIGSEGV SIGALRM nostop noprint pass

# Synthesized code and stubs are never writable, not even for a debugger: their breakpoints are the processor's.
set mem inaccessible-by-default off
mem 0x63000000 0x68000000 ro
set breakpoint pending on
# A name with a dot is no mangled name of Ada.
set print demangle off
