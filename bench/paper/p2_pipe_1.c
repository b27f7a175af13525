/* Test 2 of the SOSP'89 paper. */
#define N 1
#include "pipe.h"
