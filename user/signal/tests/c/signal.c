/* The header is true, in C and in C++. */
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "synthsignal.h"

#define SAMPLES 1000
#define TURN 6.283185307179586

static int16_t noise(unsigned *seed)
{
	*seed = *seed * 1664525u + 1013904223u;
	return (int16_t)(*seed >> 16);
}

static void filters(void)
{
	static int16_t in[SAMPLES], made[2][4 * SAMPLES];
	int16_t taps[40];
	unsigned seed = 7;
	for (int i = 0; i < SAMPLES; i++)
		in[i] = noise(&seed);
	for (int i = 0; i < 40; i++)
		taps[i] = (int16_t)(noise(&seed) / 32);
	for (unsigned phases = 1; phases <= 4; phases *= 2) {
		ssig_filter_state *own = ssig_filter_new(taps, 40, phases, 14, SSIG_SYNTHESIZED);
		ssig_filter_state *twin = ssig_filter_new(taps, 40, phases, 14, SSIG_COMPILED);
		CHECK(own && twin && !ssig_filter_is_synthesized(twin));
		ssig_filter(own, made[0], in, SAMPLES);
		ssig_filter(twin, made[1], in, SAMPLES);
		CHECK(memcmp(made[0], made[1], phases * SAMPLES * sizeof(int16_t)) == 0);
		CHECK(made[0][phases * SAMPLES - 1] != 0);
		ssig_filter_delete(own);
		ssig_filter_delete(twin);
	}
	errno = 0;
	CHECK(!ssig_filter_new(taps, 40, 3, 14, SSIG_COMPILED) && errno == EINVAL);
	CHECK(!ssig_filter_new(taps, 0, 1, 14, SSIG_COMPILED));
	ssig_filter_delete(NULL);
}

static void correlators_and_mixers(void)
{
	static int16_t in[SAMPLES], out[SAMPLES];
	int16_t pattern[32], gains[3] = { 16384, 0, -16384 };
	const int16_t *inputs[3] = { in, in, in };
	unsigned seed = 9;
	for (int i = 0; i < SAMPLES; i++)
		in[i] = (int16_t)(noise(&seed) / 64);
	for (int i = 0; i < 32; i++)
		pattern[i] = in[500 + i];
	ssig_correlator *correlator = ssig_correlator_new(pattern, 32, 10, SSIG_SYNTHESIZED);
	CHECK(correlator);
	ssig_correlate(correlator, out, in, SAMPLES);
	int best = 0;
	for (int i = 0; i < SAMPLES; i++)
		best = out[i] > out[best] ? i : best;
	CHECK(best == 531);
	ssig_correlator_delete(correlator);
	ssig_mixer *mixer = ssig_mixer_new(gains, 3, 15, SSIG_SYNTHESIZED);
	CHECK(mixer);
	ssig_mix(mixer, out, inputs, SAMPLES);
	for (int i = 0; i < SAMPLES; i++)
		CHECK(out[i] == 0);
	ssig_mixer_delete(mixer);
}

static void *transform(void *fft)
{
	float re[1024], im[1024];
	for (int round = 0; round < 20; round++) {
		for (int i = 0; i < 1024; i++) {
			re[i] = (float)cos(TURN * 37 * i / 1024);
			im[i] = 0;
		}
		ssig_fft((const ssig_fft_roots *)fft, re, im);
		for (int i = 0; i < 1024; i++)
			CHECK(fabsf(re[i] - (i == 37 || i == 1024 - 37 ? 512.0f : 0.0f)) < 0.01f);
	}
	return NULL;
}

/* Many threads use one table. */
static void transforms(void)
{
	ssig_fft_roots *fft = ssig_fft_new(1024);
	pthread_t threads[4];
	CHECK(fft && !ssig_fft_new(1000));
	for (int i = 0; i < 4; i++)
		CHECK(pthread_create(&threads[i], NULL, transform, fft) == 0);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	int16_t re[1024] = { 0 }, im[1024] = { 0 };
	re[0] = 32767;
	ssig_fft_fixed(fft, re, im);
	for (int i = 0; i < 1024; i++)
		CHECK(abs(re[i] - 32) <= 6 && abs(im[i]) <= 6);
	ssig_fft_delete(fft);
}

static void rates_and_rooms(void)
{
	static int16_t in[4410], out[6000];
	static int32_t wet[44100], dry[44100];
	ssig_resampler *resampler = ssig_resampler_new(44100, 48000);
	size_t used = 4410;
	CHECK(resampler && !ssig_resampler_new(0, 48000));
	size_t made = ssig_resample(resampler, out, 6000, in, &used);
	CHECK(used == 4410 && made >= 4798 && made <= 4801);
	ssig_resampler_step(resampler, (uint64_t)1 << 48);
	used = 100;
	CHECK(ssig_resample(resampler, out, 10, in, &used) == 10 && used <= 10);
	ssig_resampler_delete(resampler);
	ssig_room *room = ssig_reverb_new(44100, 23);
	CHECK(room && !ssig_reverb_new(10, 0));
	dry[0] = 1000000;
	ssig_reverb(room, wet, dry, 44100);
	long long sum = 0;
	for (int i = 0; i < 44100; i++)
		sum += llabs((long long)wet[i]);
	CHECK(sum > 1000000);
	ssig_reverb_delete(room);
}

int main(void)
{
	filters();
	correlators_and_mixers();
	transforms();
	rates_and_rooms();
	puts("all as documented");
	return 0;
}
