// A whole child of fluentps in C: a network with one hidden layer. ../PROTOCOL.md has the messages.
// gcc -std=c11 -D_GNU_SOURCE -Wall -Wextra -Werror -O2 client.c -lm
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

enum { HELLO = 1, TENSOR, BOUND, MAP, UNMAP, FILL, FILLED, PLACE, STEP, HAVE,
       FORWARD, GO, READY, DONE, EVAL, RESULT, STATE, FAIL, BYE };
enum { IN = 8, HIDDEN = 16, CLASSES = 4, TENSORS = 4, LAYERS = 2, REGIONS = 1024, ROWS_AT = 4096, TEST = 1 << 30 };

static const struct { const char *text; int n; } tensors[TENSORS] = { // layer, name, shape; elements
    {"hidden\nhidden.weight\n16x8", HIDDEN * IN}, {"hidden\nhidden.bias\n16", HIDDEN},
    {"out\nout.weight\n4x16", CLASSES * HIDDEN}, {"out\nout.bias\n4", CLASSES}};

static int fd, version, have; // have: layers that may be read
static struct message { uint8_t kind, flags; uint16_t zero; uint32_t a; uint64_t b; char text[60000]; } m; // came last
static struct { char *memory; size_t bytes; } regions[REGIONS]; // by number
static float *params[2][TENSORS], *grads[TENSORS];              // where PLACE says; params by slot

static void say(int kind, int flags, uint32_t a, uint64_t b, const char *text) {
    struct message out = {.kind = kind, .flags = flags, .a = a, .b = b};
    if (send(fd, &out, 16 + strlen(strcpy(out.text, text)), MSG_NOSIGNAL) < 0) exit(1); // the parent is gone
}
static void fail(const char *why) { say(FAIL, 0, 0, 0, why), exit(1); }

// hear waits for a message, and maps the region of a MAP.
static int hear(void) {
    union { char bytes[CMSG_SPACE(sizeof(int))]; struct cmsghdr align; } more;
    struct iovec to = {&m, sizeof m};
    struct msghdr h = {.msg_iov = &to, .msg_iovlen = 1, .msg_control = &more, .msg_controllen = sizeof more};
    if (recvmsg(fd, &h, MSG_CMSG_CLOEXEC) < 16 || m.kind == FAIL) exit(1); // the parent is gone, or has failed
    if (m.kind == MAP) {
        struct cmsghdr *c = CMSG_FIRSTHDR(&h);
        int file;
        if (!c || c->cmsg_type != SCM_RIGHTS || m.a >= REGIONS) fail("MAP without a descriptor, or number too large");
        memcpy(&file, CMSG_DATA(c), sizeof file);
        regions[m.a].memory = mmap(NULL, regions[m.a].bytes = m.b, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        if (regions[m.a].memory == MAP_FAILED) fail("a region cannot be mapped");
        close(file);
    }
    return m.kind;
}

// need waits until the parameters of so many layers may be read.
static void need(int layers) {
    for (; have < layers; have = m.a)
        if (hear() != HAVE) fail("another message where HAVE is expected");
}

// noise is a number from -1 to 1, the same for the same arguments.
static float noise(uint64_t i, uint64_t j) {
    uint64_t x = (i + 1) * 0x9e3779b97f4a7c15 + (j + 1) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 30)) * 0x94d049bb133111eb;
    return (float)((x ^ (x >> 31)) >> 40) / (1 << 23) - 1;
}

// forward computes the hidden layer h of a sample, and the probabilities q of its classes.
static void forward(float *const p[TENSORS], const float x[IN], float h[HIDDEN], float q[CLASSES]) {
    float sum = 0;
    need(1);
    for (int j = 0; j < HIDDEN; j++) {
        h[j] = p[1][j];
        for (int i = 0; i < IN; i++) h[j] += p[0][j * IN + i] * x[i];
        h[j] = tanhf(h[j]);
    }
    need(2);
    for (int k = 0; k < CLASSES; k++) {
        q[k] = p[3][k];
        for (int j = 0; j < HIDDEN; j++) q[k] += p[2][k * HIDDEN + j] * h[j];
        sum += q[k] = expf(q[k]);
    }
    for (int k = 0; k < CLASSES; k++) q[k] /= sum;
}

// backward adds the gradients of a sample to d. e is the difference of probabilities from those that are right.
static void backward(float *const p[], const float x[], const float h[], const float e[], float d[][HIDDEN * IN]) {
    for (int k = 0; k < CLASSES; k++) d[3][k] += e[k];
    for (int j = 0; j < HIDDEN; j++) {
        float dh = 0;
        for (int k = 0; k < CLASSES; k++) d[2][k * HIDDEN + j] += e[k] * h[j], dh += e[k] * p[2][k * HIDDEN + j];
        d[1][j] += dh *= 1 - h[j] * h[j];
        for (int i = 0; i < IN; i++) d[0][j * IN + i] += dh * x[i];
    }
}

// pass is one STEP or EVAL. Its rows are computed from their numbers: there is no file of data.
static void pass(int n, int test) {
    float x[IN], h[HIDDEN], q[CLASSES], d[TENSORS][HIDDEN * IN] = {{0}};
    const int32_t *rows = (const int32_t *)(regions[0].memory + ROWS_AT);
    int correct = 0;
    union { double value; uint64_t bits; } loss = {0};
    have = test ? LAYERS : 0;
    for (int r = 0; r < n; r++) {
        for (int i = 0; i < IN; i++) x[i] = noise(rows[r] + (test ? TEST : 0), i);
        int class = (x[0] > 0) + 2 * (x[1] > x[2]), others = 0;
        forward(params[test], x, h, q);
        for (int k = 0; k < CLASSES; k++) others += q[k] > q[class];
        correct += others == 0;
        loss.value -= log(q[class]);
        q[class] -= 1;
        if (!test) backward(params[test], x, h, q, d);
    }
    say(test ? RESULT : FORWARD, 1, correct, loss.bits, "");
    if (test) return;
    if (hear() != GO) fail("another message where GO is expected");
    for (int t = TENSORS - 1; t >= 0; t--) {
        memcpy(grads[t], d[t], tensors[t].n * sizeof(float));
        if (t % 2 == 0) say(READY, 0, t / 2, 0, ""); // both tensors of the layer are written
    }
    say(DONE, 0, 0, 0, "");
}

// place reads a table: where the parameters are, and, where flags say so, the gradients.
static void place(int slot, int flags, const char *table) {
    for (int i = 0; i < TENSORS * (1 + flags); i++) {
        struct { uint32_t region, zero; uint64_t byte; } entry;
        memcpy(&entry, table + 16 * i, sizeof entry);
        *(i < TENSORS ? &params[slot][i] : &grads[i - TENSORS]) = (float *)(regions[entry.region].memory + entry.byte);
    }
}

// fill writes the values that the tensors begin with.
static void fill(float *to) {
    uint64_t n = 0;
    for (int t = 0; t < TENSORS; t++)
        for (int i = 0; i < tensors[t].n; i++) to[n++] = t % 2 ? 0 : 0.3f * noise(i, 1000 + t);
    say(FILLED, 0, m.a, n * sizeof *to, "");
}

int main(void) {
    const char *said = getenv("FLUENTPS_CHILD");
    if (!said || sscanf(said, "fd=%d version=%d", &fd, &version) != 2 || version != 1) return puts("no parent"), 1;
    say(HELLO, 0, 1, getpid(), "");
    if (hear() != HELLO) fail("another message where HELLO is expected");
    for (int t = 0; t < TENSORS; t++) say(TENSOR, 0, t, tensors[t].n, tensors[t].text);
    for (say(BOUND, 0, TENSORS, 0, "");;) switch (hear()) {
        case MAP: break; // hear has mapped it
        case UNMAP: munmap(regions[m.a].memory, regions[m.a].bytes); break;
        case FILL: fill((float *)regions[m.a].memory); break;
        case PLACE: place(m.a, m.flags, regions[0].memory + m.b); break;
        case STEP: case EVAL: pass(m.a, m.kind == EVAL); break;
        case BYE: return 0;
        default: fail("a message that has no place here");
    }
}
