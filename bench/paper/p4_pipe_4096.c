/* Test 4 of the SOSP'89 paper. */
#define N 4096
#include "pipe.h"
