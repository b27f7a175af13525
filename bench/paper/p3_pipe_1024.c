/* Test 3 of the SOSP'89 paper. */
#define N 1024
#include "pipe.h"
