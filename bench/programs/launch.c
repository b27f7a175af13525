/*
 * Runs whole programs and says how many guest instructions each took, from before its fork to after its end.
 *
 *     launch ROWS [TIMES [FOLDER]]
 *
 * Each line of ROWS is NAME, a tabulator, and a command: words separated by spaces, or a line for the shell after "sh: ".
 * They run in FOLDER (/tmp), where they find
 *
 *     tree/           20 folders with 15 files of 3,000 bytes each
 *     big             8 MiB of lines
 *     many/           100 files for the compiler, and how to make them
 *
 * A command runs once for all that happens only once, and then TIMES times (3). For each row one line is printed:
 *
 *     row NAME STATUS FIRST MEDIAN HASH TICKS...     STATUS: of the last run, as a shell has it; HASH: of the lines of its standard
 *                                                    output; TICKS: of all later runs, ascending
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define TIMES 3
#define TIMES_MAX 1000
#define WORDS_MAX 32
#define OUTPUT ".output"

static void die(const char *what)
{
	perror(what);
	exit(1);
}

/* Lines of words that differ from file to file; some have the word that is looked for. */
static void write_text(const char *path, unsigned seed, long bytes)
{
	static const char *words[] = {"kernel", "reads", "a", "queue", "of", "code", "and", "jumps", "needle", "to", "it"};
	FILE *file = fopen(path, "w");

	if (!file)
		die(path);
	for (long written = 0; written < bytes;) {
		seed = seed * 1103515245u + 12345u;
		unsigned which = seed >> 16;
		int is_rare = which % 11 == 8 && which / 11 % 16;
		written += fprintf(file, "%s%c", is_rare ? "thread" : words[which % 11], which / 11 % 9 ? ' ' : '\n');
	}
	fclose(file);
	struct timespec times[2] = {{.tv_sec = 900000000}, {.tv_sec = 900000000}};
	utimensat(AT_FDCWD, path, times, 0);
}

static void make_files(void)
{
	char path[64];

	mkdir("tree", 0755);
	for (int folder = 0; folder < 20; folder++) {
		snprintf(path, sizeof path, "tree/folder%02d", folder);
		mkdir(path, 0755);
		for (int file = 0; file < 15; file++) {
			snprintf(path, sizeof path, "tree/folder%02d/file%02d.c", folder, file);
			write_text(path, folder * 100 + file, 3000);
		}
	}
	write_text("big", 7, 8 << 20);
}

static void make_sources(void)
{
	char path[64];
	FILE *rules;

	mkdir("many", 0755);
	rules = fopen("many/Makefile", "w");
	if (!rules)
		die("many/Makefile");
	fprintf(rules, "all: $(patsubst %%.c,%%.o,$(wildcard *.c))\nclean:\n\trm -f *.o\n");
	fclose(rules);
	for (int i = 0; i < 100; i++) {
		snprintf(path, sizeof path, "many/file%02d.c", i);
		FILE *file = fopen(path, "w");
		if (!file)
			die(path);
		fprintf(file, "int f%d(int x)\n{\n\tint y = %d;\n\twhile (x-- > 0)\n\t\ty = y * x ^ y >> 3;\n\treturn y;\n}\n", i, i);
		fclose(file);
	}
}

static void become(char *command)
{
	char *words[WORDS_MAX + 1];
	int n = 0;

	dup2(open("/dev/null", O_RDONLY), 0);
	dup2(open(OUTPUT, O_WRONLY | O_CREAT | O_TRUNC, 0644), 1);
	if (strncmp(command, "sh: ", 4) == 0)
		execl("/bin/sh", "sh", "-c", command + 4, NULL);
	for (char *word = strtok(command, " "); word && n < WORDS_MAX; word = strtok(NULL, " "))
		words[n++] = word;
	words[n] = NULL;
	execvp(words[0], words);
	_exit(127);
}

static unsigned long long run(char *command, int *status)
{
	unsigned long long start = __builtin_ia32_rdtsc();
	pid_t child = fork();

	if (child == -1)
		die("fork");
	if (child == 0)
		become(command);
	waitpid(child, status, 0);
	return __builtin_ia32_rdtsc() - start;
}

/* FNV-1a of each line, summed: in which order a folder is listed is a system's own. */
static unsigned long long hash_output(void)
{
	const unsigned long long start = 0xcbf29ce484222325;
	unsigned long long sum = 0, hash = start;
	char block[4096];
	ssize_t got;
	int file = open(OUTPUT, O_RDONLY);

	while ((got = read(file, block, sizeof block)) > 0)
		for (ssize_t i = 0; i < got; i++) {
			hash = (hash ^ (unsigned char)block[i]) * 0x100000001b3;
			if (block[i] == '\n')
				sum += hash, hash = start;
		}
	close(file);
	return sum + hash;
}

static int by_size(const void *a, const void *b)
{
	unsigned long long x = *(const unsigned long long *)a, y = *(const unsigned long long *)b;

	return (x > y) - (x < y);
}

static void measure(const char *name, char *command, int times)
{
	unsigned long long first, ticks[TIMES_MAX];
	int status;

	first = run(command, &status);
	for (int i = 0; i < times; i++)
		ticks[i] = run(command, &status);
	qsort(ticks, times, sizeof *ticks, by_size);
	status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
	printf("row %s %d %llu %llu %llx", name, status, first, ticks[times / 2], hash_output());
	for (int i = 0; i < times; i++)
		printf(" %llu", ticks[i]);
	printf("\n");
	fflush(stdout);
}

int main(int argc, char **argv)
{
	char line[4096];
	FILE *rows = fopen(argc > 1 ? argv[1] : "/bench/rows", "re");
	int times = argc > 2 ? atoi(argv[2]) : TIMES;

	if (times < 1 || times > TIMES_MAX)
		times = TIMES;
	if (!rows)
		die("rows");
	clearenv();
	setenv("PATH", "/usr/bin:/bin:/usr/sbin:/sbin", 1);
	setenv("LC_ALL", "C", 1);
	setenv("HOME", "/tmp", 1);
	const char *folder = argc > 3 ? argv[3] : "/tmp";
	if (chdir(folder) == -1)
		die(folder);
	if (access("big", F_OK) == -1)
		make_files();
	if (argc > 3 && access("many", F_OK) == -1)
		make_sources();
	while (fgets(line, sizeof line, rows)) {
		line[strcspn(line, "\n")] = '\0';
		char *command = strchr(line, '\t');
		if (!command)
			continue;
		*command++ = '\0';
		measure(line, command, times);
	}
	return 0;
}
