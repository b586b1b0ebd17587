"""Write data of your own as a log, one message per reading, and read it again in another format."""

from construct_messages import Message, Quad, iri, literal, read_log, write_log

SOSA = "http://www.w3.org/ns/sosa/"
XSD = "http://www.w3.org/2001/XMLSchema#"


def readings():
    """Yield messages as they are measured; none is held in memory."""
    for number, celsius in enumerate(["21.5", "21.7", "22.0"], 1):
        reading = iri(f"https://example.org/reading/{number}")
        yield Message(
            [
                Quad(
                    reading,
                    iri(SOSA + "hasSimpleResult"),
                    literal(celsius, datatype=XSD + "decimal"),
                )
            ]
        )


print(write_log(readings(), "readings.jelly"), "messages written")
write_log(read_log("readings.jelly"), "readings.ttl", prefixes={"sosa": SOSA})
with open("readings.ttl", encoding="utf-8") as log:
    print(log.read(), end="")
