"""One API over any transport. Reading order: connect, client, queue, taking, claim; checks and codecs on the way in."""
