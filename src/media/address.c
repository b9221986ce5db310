/* Public and private internet addresses (address.h). */
#include "media/address.h"

#include <string.h>

#include <netinet/in.h>

#include "base/compiler.h"
#include "media/bytes.h"

/* A block of addresses. */
typedef struct block {
    uint8_t bytes[4]; /* the first `bits` bits of these are the block's prefix */
    unsigned bits;
    mt_address_reach reach;
} block;

/* IPv4 blocks that are not on the public internet. */
static const block v4_closed[] = {
    {{0, 0, 0, 0}, 8, MT_ADDRESS_MACHINE},       /* this network */
    {{10, 0, 0, 0}, 8, MT_ADDRESS_PRIVATE},      /* private */
    {{100, 64, 0, 0}, 10, MT_ADDRESS_PRIVATE},   /* provider's NAT (CGNAT), and metadata services of some clouds */
    {{127, 0, 0, 0}, 8, MT_ADDRESS_MACHINE},     /* loopback */
    {{169, 254, 0, 0}, 16, MT_ADDRESS_MACHINE},  /* link-local, and metadata services of most clouds */
    {{172, 16, 0, 0}, 12, MT_ADDRESS_PRIVATE},   /* private */
    {{192, 0, 0, 0}, 24, MT_ADDRESS_MACHINE},    /* protocol assignments, and metadata services of some clouds */
    {{192, 0, 2, 0}, 24, MT_ADDRESS_MACHINE},    /* documentation */
    {{192, 88, 99, 0}, 24, MT_ADDRESS_MACHINE},  /* 6to4 relays */
    {{192, 168, 0, 0}, 16, MT_ADDRESS_PRIVATE},  /* private */
    {{198, 18, 0, 0}, 15, MT_ADDRESS_MACHINE},   /* benchmarks */
    {{198, 51, 100, 0}, 24, MT_ADDRESS_MACHINE}, /* documentation */
    {{203, 0, 113, 0}, 24, MT_ADDRESS_MACHINE},  /* documentation */
    {{224, 0, 0, 0}, 4, MT_ADDRESS_MACHINE},     /* multicast */
    {{240, 0, 0, 0}, 4, MT_ADDRESS_MACHINE},     /* reserved, broadcast */
};

/* Blocks within 2000::/3 that are not public. All of the public internet's IPv6 is in 2000::/3: loopback, link-local,
   unique local, multicast, IPv4-mapped and NAT64 addresses are outside. */
static const block v6_closed[] = {
    {{0x20, 0x01, 0x00, 0x00}, 23, MT_ADDRESS_MACHINE}, /* protocol assignments: Teredo, ORCHID */
    {{0x20, 0x01, 0x0d, 0xb8}, 32, MT_ADDRESS_MACHINE}, /* documentation */
    {{0x20, 0x02, 0x00, 0x00}, 16, MT_ADDRESS_MACHINE}, /* 6to4: contains an IPv4 address */
    {{0x3f, 0xff, 0x00, 0x00}, 20, MT_ADDRESS_MACHINE}, /* documentation */
};

/* The unique local addresses of private networks, outside 2000::/3. */
static const block v6_private[] = {{{0xfc, 0, 0, 0}, 7, MT_ADDRESS_PRIVATE}};

/* The reach of the block that has the address; `otherwise` where none has it. */
static mt_address_reach find(const uint8_t *address, const block *blocks, size_t count, mt_address_reach otherwise)
{
    for (size_t i = 0; i < count; i++)
        if ((mt_be32(address) ^ mt_be32(blocks[i].bytes)) >> (32 - blocks[i].bits) == 0)
            return blocks[i].reach;
    return otherwise;
}

mt_address_reach mt_address_reach_of(const struct sockaddr *address)
{
    uint8_t bytes[16];

    if (address->sa_family == AF_INET) {
        struct sockaddr_in v4;

        memcpy(&v4, address, sizeof(v4)); /* copied, as the pointer need not be aligned */
        memcpy(bytes, &v4.sin_addr, 4);
        return find(bytes, v4_closed, MT_COUNT(v4_closed), MT_ADDRESS_PUBLIC);
    }
    if (address->sa_family == AF_INET6) {
        struct sockaddr_in6 v6;

        memcpy(&v6, address, sizeof(v6));
        memcpy(bytes, &v6.sin6_addr, 16);
        return bytes[0] >> 5 == 1 ? find(bytes, v6_closed, MT_COUNT(v6_closed), MT_ADDRESS_PUBLIC)
                                  : find(bytes, v6_private, MT_COUNT(v6_private), MT_ADDRESS_MACHINE);
    }
    return MT_ADDRESS_MACHINE;
}

bool mt_address_is_public(const struct sockaddr *address)
{
    return mt_address_reach_of(address) == MT_ADDRESS_PUBLIC;
}
