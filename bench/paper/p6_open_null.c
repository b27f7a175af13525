/* Test 6 of the SOSP'89 paper. */
#define D "/dev/null"
#include "open.h"
