/* Ends the program with the line whose condition does not hold. */
#define CHECK(what) \
	do \
		if (!(what)) { \
			printf("line %d: %s\n", __LINE__, #what); \
			exit(1); \
		} \
	while (0)
