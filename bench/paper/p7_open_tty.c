/* Test 7 of the SOSP'89 paper. */
#define D "/dev/tty"
#include "open.h"
