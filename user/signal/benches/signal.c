/* What loops cost that are written for their coefficients, beside what the compiler makes of the same sums. This file is compiled with -O3
 * and for this processor; the library is as its build.sh makes it. Started by `cargo bench -p synthsignal`.
 *
 *     signal OPERATION ROUNDS     prints nanoseconds (guest instructions under --icount) and a checksum */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "synthsignal.h"

enum { SAMPLES = 1024, TAPS_MAX = 128, INPUTS = 6 };

static int16_t in[INPUTS][SAMPLES], out[4 * SAMPLES];
static int16_t taps[TAPS_MAX];

static int16_t limit(int32_t value)
{
	return value > 32767 ? 32767 : value < -32768 ? -32768 : (int16_t)value;
}

/* A filter in C: what one writes, and leaves to the compiler. The history is before the block, as the library keeps it. */
struct filter {
	int16_t window[TAPS_MAX + SAMPLES], by_phase[4][TAPS_MAX];
	int count, phases, shift;
};

static void filter_init(struct filter *filter, int count, int phases)
{
	memset(filter, 0, sizeof *filter);
	filter->count = count / phases, filter->phases = phases, filter->shift = 14;
	for (int tap = 0; tap < count; tap++)
		filter->by_phase[tap % phases][count / phases - 1 - tap / phases] = taps[tap];
}

__attribute__((noinline)) static void filter_in_c(struct filter *filter, int16_t *to, const int16_t *from, int count)
{
	int before = filter->count - 1;
	memcpy(filter->window + before, from, count * sizeof *from);
	for (int n = 0; n < count; n++)
		for (int phase = 0; phase < filter->phases; phase++) {
			int32_t sum = 1 << filter->shift >> 1;
			for (int k = 0; k < filter->count; k++)
				sum += filter->by_phase[phase][k] * filter->window[n + k];
			to[n * filter->phases + phase] = limit(sum >> filter->shift);
		}
	memmove(filter->window, filter->window + count, before * sizeof *from);
}

/* The same for a number of taps and phases that the compiler knows, loops turned so that it can use whole vectors of outputs. */
#define FILTER_OF(name, COUNT, PHASES) \
	__attribute__((noinline)) static void name(struct filter *filter, int16_t *restrict to, const int16_t *from, int count) \
	{ \
		enum { EACH = COUNT / PHASES, BLOCK = 64 }; \
		int32_t sums[PHASES][BLOCK]; \
		memcpy(filter->window + EACH - 1, from, count * sizeof *from); \
		for (int base = 0; base < count; base += BLOCK) { \
			for (int phase = 0; phase < PHASES; phase++) { \
				for (int n = 0; n < BLOCK; n++) \
					sums[phase][n] = 1 << 13; \
				for (int k = 0; k < EACH; k++) \
					for (int n = 0; n < BLOCK; n++) \
						sums[phase][n] += filter->by_phase[phase][k] * filter->window[base + n + k]; \
			} \
			for (int n = 0; n < BLOCK; n++) \
				for (int phase = 0; phase < PHASES; phase++) \
					to[(base + n) * PHASES + phase] = limit(sums[phase][n] >> 14); \
		} \
		memmove(filter->window, filter->window + count, (EACH - 1) * sizeof *from); \
	}
FILTER_OF(filter_of_64, 64, 1)
FILTER_OF(filter_of_96_by_4, 96, 4)

__attribute__((noinline)) static void mix_in_c(int16_t *to, const int16_t *const *from, const int16_t *gains, int inputs, int count)
{
	for (int n = 0; n < count; n++) {
		int32_t sum = 1 << 14;
		for (int input = 0; input < inputs; input++)
			sum += gains[input] * from[input][n];
		to[n] = limit(sum >> 15);
	}
}

/* One input after the other: what vectorizes. */
__attribute__((noinline)) static void mix_turned(int16_t *to, const int16_t *const *from, const int16_t *gains, int inputs, int count)
{
	static int32_t sums[SAMPLES];
	for (int n = 0; n < count; n++)
		sums[n] = 1 << 14;
	for (int input = 0; input < inputs; input++)
		for (int n = 0; n < count; n++)
			sums[n] += gains[input] * from[input][n];
	for (int n = 0; n < count; n++)
		to[n] = limit(sums[n] >> 15);
}

/* The library's float FFT, in C. */
static float roots_re[1024], roots_im[1024];

static void roots_init(void)
{
	for (int half = 1; half < 1024; half *= 2)
		for (int k = 0; k < half; k++) {
			roots_re[half - 1 + k] = (float)cos(3.141592653589793 * k / half);
			roots_im[half - 1 + k] = (float)-sin(3.141592653589793 * k / half);
		}
}

__attribute__((noinline)) static void fft_in_c(float *restrict re, float *restrict im, int bits)
{
	for (int at = 0; at < 1 << bits; at++) {
		int other = 0;
		for (int bit = 0; bit < bits; bit++)
			other |= (at >> bit & 1) << (bits - 1 - bit);
		if (at < other) {
			float t = re[at];
			re[at] = re[other], re[other] = t;
			t = im[at], im[at] = im[other], im[other] = t;
		}
	}
	for (int half = 1; half < 1 << bits; half *= 2) {
		const float *restrict w_re = roots_re + half - 1, *restrict w_im = roots_im + half - 1;
		for (int base = 0; base < 1 << bits; base += 2 * half) {
			float *restrict a_re = re + base, *restrict a_im = im + base;
			float *restrict b_re = a_re + half, *restrict b_im = a_im + half;
			for (int k = 0; k < half; k++) {
				float t_re = b_re[k] * w_re[k] - b_im[k] * w_im[k];
				float t_im = b_re[k] * w_im[k] + b_im[k] * w_re[k];
				b_re[k] = a_re[k] - t_re, b_im[k] = a_im[k] - t_im;
				a_re[k] += t_re, a_im[k] += t_im;
			}
		}
	}
}

static const int16_t gains[INPUTS] = { 16384, 0, 8192, 8192, 0, 4096 };

static uint64_t nanos(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ull + now.tv_nsec;
}

static uint32_t checksum(uint32_t sum, const int16_t *samples, int count)
{
	for (int i = 0; i < count; i++)
		sum = (sum ^ (uint16_t)samples[i]) * 16777619u;
	return sum;
}

/* An interpolator's taps: its first phase repeats the sample. */
static void interpolator(int count, int phases)
{
	for (int tap = 0; tap < count; tap++)
		taps[tap] = tap % phases ? (int16_t)((tap * 2654435761u >> 21) % 1200 - 600) : 0;
	taps[count / 2 / phases * phases] = 16384;
}

static void filter_taps(int count)
{
	for (int tap = 0; tap < count; tap++)
		taps[tap] = (int16_t)((tap * 2654435761u >> 20) % 1000 - 500);
}

static void run_filter(const char *way, int count, int phases, int rounds, uint64_t *spent)
{
	static struct filter own;
	ssig_filter_state *library = NULL;
	filter_init(&own, count, phases);
	if (!strcmp(way, "written") || !strcmp(way, "twin"))
		library = ssig_filter_new(taps, count, phases, 14, strcmp(way, "twin") ? SSIG_SYNTHESIZED : SSIG_COMPILED);
	for (int round = -1; round < rounds; round++) {
		uint64_t before = nanos();
		if (library)
			ssig_filter(library, out, in[0], SAMPLES);
		else if (!strcmp(way, "c"))
			filter_in_c(&own, out, in[0], SAMPLES);
		else if (phases == 1)
			filter_of_64(&own, out, in[0], SAMPLES);
		else
			filter_of_96_by_4(&own, out, in[0], SAMPLES);
		*spent += round < 0 ? 0 : nanos() - before;
	}
	ssig_filter_delete(library);
}

static void run_mixer(const char *way, int rounds, uint64_t *spent)
{
	const int16_t *inputs[INPUTS];
	ssig_mixer *library = ssig_mixer_new(gains, INPUTS, 15, strcmp(way, "twin") ? SSIG_SYNTHESIZED : SSIG_COMPILED);
	for (int input = 0; input < INPUTS; input++)
		inputs[input] = in[input];
	for (int round = -1; round < rounds; round++) {
		uint64_t before = nanos();
		if (!strcmp(way, "c"))
			mix_in_c(out, inputs, gains, INPUTS, SAMPLES);
		else if (!strcmp(way, "turned"))
			mix_turned(out, inputs, gains, INPUTS, SAMPLES);
		else
			ssig_mix(library, out, inputs, SAMPLES);
		*spent += round < 0 ? 0 : nanos() - before;
	}
	ssig_mixer_delete(library);
}

static void run_fft(const char *way, int rounds, uint64_t *spent)
{
	int is_fixed = !strcmp(way, "fixed");
	static float re[1024], im[1024];
	static int16_t fixed_re[1024], fixed_im[1024];
	ssig_fft_roots *fft = ssig_fft_new(1024);
	for (int round = -1; round < rounds; round++) {
		for (int n = 0; n < 1024; n++)
			re[n] = fixed_re[n] = in[0][n], im[n] = 0, fixed_im[n] = 0;
		uint64_t before = nanos();
		if (!strcmp(way, "c"))
			fft_in_c(re, im, 10);
		else if (is_fixed)
			ssig_fft_fixed(fft, fixed_re, fixed_im);
		else
			ssig_fft(fft, re, im);
		*spent += round < 0 ? 0 : nanos() - before;
	}
	memcpy(out, fixed_re, sizeof fixed_re);
	ssig_fft_delete(fft);
}

int main(int argc, char **argv)
{
	uint64_t spent = 0;
	const char *way = argc == 3 ? strchr(argv[1], '-') : NULL;
	if (!way) {
		fprintf(stderr, "error: no operation was named\nhelp: cargo bench -p synthsignal\n");
		return 2;
	}
	int rounds = atoi(argv[2]);
	way++;
	for (int input = 0; input < INPUTS; input++)
		for (int n = 0; n < SAMPLES; n++)
			in[input][n] = (int16_t)((n * 2654435761u + input * 40503u) >> 16);
	if (!strncmp(argv[1], "filter-", 7)) {
		filter_taps(64);
		run_filter(way, 64, 1, rounds, &spent);
	} else if (!strncmp(argv[1], "interpolator-", 13)) {
		interpolator(96, 4);
		run_filter(way, 96, 4, rounds, &spent);
	} else if (!strncmp(argv[1], "mixer-", 6)) {
		run_mixer(way, rounds, &spent);
	} else if (!strncmp(argv[1], "fft-", 4)) {
		roots_init();
		run_fft(way, rounds, &spent);
	} else {
		fprintf(stderr, "error: there is no operation %s\n", argv[1]);
		return 2;
	}
	printf("%llu %08x\n", (unsigned long long)spent, checksum(2166136261u, out, 4 * SAMPLES));
	return 0;
}
