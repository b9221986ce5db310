/* Tells public internet addresses from private ones, so that URLs in requests cannot reach internal services. */
#ifndef MT_MEDIA_ADDRESS_H
#define MT_MEDIA_ADDRESS_H

#include <stdbool.h>

#include <sys/socket.h>

/* From where an address can be reached, widest first. */
typedef enum mt_address_reach {
    MT_ADDRESS_PUBLIC,  /* the public internet */
    MT_ADDRESS_PRIVATE, /* a private network, or a provider's NAT */
    MT_ADDRESS_MACHINE  /* this machine and its link, with metadata services of clouds; and whatever is reserved */
} mt_address_reach;

mt_address_reach mt_address_reach_of(const struct sockaddr *address);

/* Whether the address is on the public internet: not this machine, a private network, a provider's NAT, a cloud's
   metadata service, a multicast group, nor an IPv6 form that contains an IPv4 address. */
bool mt_address_is_public(const struct sockaddr *address);

#endif
