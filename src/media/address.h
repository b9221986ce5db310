/* Tells public internet addresses from private ones, so that URLs in requests cannot reach internal services. */
#ifndef MT_MEDIA_ADDRESS_H
#define MT_MEDIA_ADDRESS_H

#include <stdbool.h>

#include <sys/socket.h>

/* Whether the address is on the public internet: not this machine, a private network, a provider's NAT, a cloud's
   metadata service, a multicast group, nor an IPv6 form that contains an IPv4 address. */
bool mt_address_is_public(const struct sockaddr *address);

#endif
