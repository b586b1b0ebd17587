package construct_messages.spark;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.connector.catalog.functions.BoundFunction;
import org.apache.spark.sql.connector.catalog.functions.ScalarFunction;
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * {@code statement(line, file, graphs, lenient)}: the terms of a line of N-Triples or N-Quads.
 *
 * <p>RDF 1.2 N-Triples, sections 4 (canonical form) and 7 (grammar). Lines in canonical form are scanned here, without
 * copying them. What is rare is left to {@link Tokens}: triple terms, labels beyond ASCII, hosts with users, brackets or
 * percent signs, private characters of queries, long language tags, escapes by number, and all that is malformed.
 *
 * <p>A position is an index of the line's bytes; {@code BAD} stands for no match, and whatever begins there is no match.
 */
public final class Statement implements UnboundFunction, ScalarFunction<InternalRow> {
  private static final int BAD = -1;

  private static final int LETTER = 1;
  private static final int LOWER = 2;
  private static final int DIGIT = 4;
  private static final int HEX = 8;
  private static final int SCHEME = 16;
  private static final int HOST = 32;
  private static final int IRI = 64;
  private static final int LABEL = 128;
  private static final int PLAIN = 256;
  private static final int ESCAPED = 512;
  private static final short[] KINDS = new short[128];

  static {
    kind("abcdefghijklmnopqrstuvwxyz", LOWER | LETTER | SCHEME | HOST | IRI | LABEL);
    kind("ABCDEFGHIJKLMNOPQRSTUVWXYZ", LETTER | SCHEME | HOST | IRI | LABEL);
    kind("0123456789", DIGIT | HEX | SCHEME | HOST | IRI | LABEL);
    kind("abcdefABCDEF", HEX);
    kind("+-.", SCHEME);
    kind("-._~!$&'()*+,;=", HOST | IRI);
    kind(":@/?", IRI);
    kind("_-.", LABEL);
    kind("tbnrf\"\\", ESCAPED);
    for (int c = ' '; c <= '~'; c++) {
      if (c != '"' && c != '\\') {
        KINDS[c] |= PLAIN;
      }
    }
  }

  private static void kind(String characters, int kinds) {
    for (char c : characters.toCharArray()) {
      KINDS[c] |= kinds;
    }
  }

  private static final String RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#";
  static final String STRING = "<http://www.w3.org/2001/XMLSchema#string>";
  static final String LANG_STRING = "<" + RDF + "langString>";
  static final String DIR_LANG_STRING = "<" + RDF + "dirLangString>";
  private static final UTF8String[] NOT_A_DATATYPE = {
    UTF8String.fromString(STRING), UTF8String.fromString(LANG_STRING), UTF8String.fromString(DIR_LANG_STRING),
  };

  private static final DataType RESULT =
      new StructType(
          new StructField[] {
            DataTypes.createStructField("subject", DataTypes.StringType, true),
            DataTypes.createStructField("predicate", DataTypes.StringType, true),
            DataTypes.createStructField("object", DataTypes.StringType, true),
            DataTypes.createStructField("graph", DataTypes.StringType, true),
          });

  /**
   * The terms of a line; no terms where it is blank, a comment or a version; null where it is malformed.
   *
   * @param line text without its line break, not necessarily of UTF-8
   * @param file its name, of which labels of blank nodes get a part in front
   * @param graphs whether a statement may name a graph (N-Quads)
   * @param lenient whether malformed IRIs and language tags are passed, and literals without the tag of their datatype
   */
  public static InternalRow invoke(UTF8String line, UTF8String file, boolean graphs, boolean lenient) {
    if (line == null) {
      return null;
    }
    InternalRow statement = canonical(line, file, graphs);
    return statement == null ? Tokens.statement(line, file, graphs, lenient) : statement;
  }

  /** The terms of a line, or null where it is not known to be a statement in canonical form. */
  private static InternalRow canonical(UTF8String line, UTF8String file, boolean graphs) {
    byte[] bytes;
    int start = 0;
    if (line.getBaseObject() instanceof byte[] array) {
      bytes = array;
      start = (int) (line.getBaseOffset() - Platform.BYTE_ARRAY_OFFSET);
    } else { // outside of Java's heap
      bytes = line.getBytes();
    }
    int end = start + line.numBytes();
    Recent recent = Recent.ofThread();
    int afterSubject = recent.behindSubject(bytes, start, end);
    if (afterSubject == start) {
      afterSubject = node(bytes, start, end);
      if (afterSubject != BAD && bytes[start] == '<') {
        recent.keepSubject(bytes, start, afterSubject);
      }
    }
    int afterSpace = after(bytes, afterSubject, end, ' ');
    UTF8String predicate = checked(bytes, afterSpace, end, recent);
    if (predicate == null) {
      return null;
    }
    int object = after(bytes, afterSpace + predicate.numBytes(), end, ' ');
    boolean text = at(bytes, object, end) == '"';
    int afterObject = text ? literal(bytes, object, end, recent) : node(bytes, object, end);
    int next = after(bytes, afterObject, end, ' ');
    UTF8String graph = null;
    if (graphs && next != BAD && at(bytes, next, end) != '.') {
      int afterGraph = node(bytes, next, end);
      graph = afterGraph == BAD ? null : scoped(bytes, next, afterGraph, file, recent);
      next = after(bytes, afterGraph, end, ' ');
    }
    if (after(bytes, next, end, '.') != end) {
      return null;
    }
    return row(
        scoped(bytes, start, afterSubject, file, recent),
        predicate,
        scoped(bytes, object, afterObject, file, recent),
        graph);
  }

  static InternalRow row(UTF8String subject, UTF8String predicate, UTF8String object, UTF8String graph) {
    return new GenericInternalRow(new Object[] {subject, predicate, object, graph});
  }

  /** A term, with the scope of its file in the label if it is a blank node. */
  private static UTF8String scoped(byte[] bytes, int start, int end, UTF8String file, Recent recent) {
    if (at(bytes, start, end) != '_') {
      return slice(bytes, start, end);
    }
    return UTF8String.concat(recent.scope(file), slice(bytes, start + 2, end));
  }

  private static UTF8String slice(byte[] bytes, int start, int end) {
    return UTF8String.fromBytes(bytes, start, end - start);
  }

  /** The byte there, or 0, which no term has. */
  private static byte at(byte[] bytes, int at, int end) {
    return at < 0 || at >= end ? 0 : bytes[at];
  }

  private static int after(byte[] bytes, int at, int end, char expected) {
    return at(bytes, at, end) == expected ? at + 1 : BAD;
  }

  private static boolean is(byte[] bytes, int at, int end, int kind) {
    byte c = at(bytes, at, end);
    return c >= 0 && (KINDS[c] & kind) != 0;
  }

  /** Behind all bytes of a kind. */
  private static int run(byte[] bytes, int at, int end, int kind) {
    while (is(bytes, at, end, kind)) {
      at++;
    }
    return at;
  }

  private static int node(byte[] bytes, int at, int end) {
    return at(bytes, at, end) == '_' ? blank(bytes, at, end) : iri(bytes, at, end);
  }

  private static int blank(byte[] bytes, int at, int end) {
    int label = after(bytes, after(bytes, at, end, '_'), end, ':');
    byte first = at(bytes, label, end);
    if (first == '-' || first == '.') {
      return BAD;
    }
    int behind = run(bytes, label, end, LABEL);
    return behind == label || at(bytes, behind - 1, end) == '.' ? BAD : behind;
  }

  /** The IRI that begins there, one that was read before or is checked now; null: no match. */
  private static UTF8String checked(byte[] bytes, int at, int end, Recent recent) {
    if (at(bytes, at, end) != '<') {
      return null;
    }
    UTF8String known = recent.iri(bytes, at, end);
    if (known != null) {
      return known;
    }
    int behind = iri(bytes, at, end);
    return behind == BAD ? null : recent.keep(bytes, at, behind);
  }

  private static int iri(byte[] bytes, int at, int end) {
    at = after(bytes, at, end, '<');
    if (!is(bytes, at, end, LETTER)) {
      return BAD;
    }
    at = after(bytes, run(bytes, at, end, SCHEME), end, ':');
    if (at(bytes, at, end) == '/' && at(bytes, at + 1, end) == '/') {
      at = run(bytes, at + 2, end, HOST);
      if (at(bytes, at, end) == ':') {
        at = run(bytes, at + 1, end, DIGIT);
      }
      byte c = at(bytes, at, end);
      if (c != '/' && c != '?' && c != '#' && c != '>') {
        return BAD;
      }
    }
    if (at == BAD) {
      return BAD;
    }
    boolean fragment = false;
    while (true) {
      at = run(bytes, at, end, IRI);
      byte c = at(bytes, at, end);
      if (c == '>') {
        return at + 1;
      } else if (c == '#' && !fragment) {
        fragment = true;
        at++;
      } else if (c == '%' && is(bytes, at + 1, end, HEX) && is(bytes, at + 2, end, HEX)) {
        at += 3;
      } else if (c < 0) {
        int point = codePoint(bytes, at, end);
        if (!isInIris(point)) {
          return BAD;
        }
        at += size(point);
      } else {
        return BAD;
      }
    }
  }

  /** The ucschar of RFC 3987, section 2.2. */
  private static boolean isInIris(int point) {
    if (point < 0x10000) {
      return point >= 0xA0 && point <= 0xD7FF || point >= 0xF900 && point <= 0xFDCF || point >= 0xFDF0 && point <= 0xFFEF;
    }
    return point < 0xF0000 && (point & 0xFFFF) <= 0xFFFD && (point < 0xE0000 || point >= 0xE1000);
  }

  private static int literal(byte[] bytes, int at, int end, Recent recent) {
    at = after(bytes, at, end, '"');
    while (true) {
      at = run(bytes, at, end, PLAIN);
      byte c = at(bytes, at, end);
      if (c == '"') {
        at++;
        break;
      } else if (c == '\\' && is(bytes, at + 1, end, ESCAPED)) {
        at += 2;
      } else if (c < 0) {
        int point = codePoint(bytes, at, end);
        if (point < 0 || point == 0xFFFE || point == 0xFFFF) { // the last two are escaped
          return BAD;
        }
        at += size(point);
      } else {
        return BAD;
      }
    }
    byte c = at(bytes, at, end);
    if (c == '@') {
      return language(bytes, at + 1, end);
    } else if (c == '^') {
      return datatype(bytes, after(bytes, at + 1, end, '^'), end, recent);
    }
    return at;
  }

  private static int datatype(byte[] bytes, int at, int end, Recent recent) {
    UTF8String datatype = checked(bytes, at, end, recent);
    if (datatype == null) {
      return BAD;
    }
    for (UTF8String other : NOT_A_DATATYPE) {
      if (datatype.equals(other)) {
        return BAD;
      }
    }
    return at + datatype.numBytes();
  }

  /** Language, script, region and direction: RFC 5646, section 2.1, and RDF 1.2 Concepts, section 3.3. */
  private static int language(byte[] bytes, int at, int end) {
    int behind = run(bytes, at, end, LOWER);
    if (behind - at < 2 || behind - at > 8) {
      return BAD;
    }
    int script = run(bytes, after(bytes, behind, end, '-'), end, LOWER);
    if (script - behind == 5) {
      behind = script;
    }
    int letters = run(bytes, after(bytes, behind, end, '-'), end, LOWER);
    int digits = run(bytes, after(bytes, behind, end, '-'), end, DIGIT);
    if (letters - behind == 3) {
      behind = letters;
    } else if (digits - behind == 4) {
      behind = digits;
    }
    int direction = after(bytes, after(bytes, behind, end, '-'), end, '-');
    if (direction == BAD) {
      return behind;
    }
    byte first = at(bytes, direction, end);
    int last = after(bytes, after(bytes, direction + 1, end, 't'), end, 'r');
    return first == 'l' || first == 'r' ? last : BAD;
  }

  /** The character of two bytes and more that begins there; -1 if it is not UTF-8 as RFC 3629 has it. */
  private static int codePoint(byte[] bytes, int at, int end) {
    int first = at(bytes, at, end) & 0xFF;
    int more = first >= 0xF0 ? 3 : first >= 0xE0 ? 2 : 1;
    int point = first & (0x3F >> more);
    for (int i = 1; i <= more; i++) {
      byte next = at(bytes, at + i, end);
      if ((next & 0xC0) != 0x80) {
        return -1;
      }
      point = point << 6 | next & 0x3F;
    }
    boolean surrogate = point >= 0xD800 && point <= 0xDFFF;
    return first < 0xC2 || first > 0xF4 || size(point) != more + 1 || surrogate || point > 0x10FFFF ? -1 : point;
  }

  private static int size(int point) {
    return point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
  }

  @Override
  public String name() {
    return "statement";
  }

  @Override
  public String description() {
    return "statement(line, file, graphs, lenient): the terms of a line of N-Triples or N-Quads; NULL: malformed";
  }

  @Override
  public BoundFunction bind(StructType arguments) {
    if (arguments.size() != 4) {
      throw new UnsupportedOperationException(description());
    }
    return this;
  }

  @Override
  public DataType[] inputTypes() {
    return new DataType[] {
      DataTypes.StringType, DataTypes.StringType, DataTypes.BooleanType, DataTypes.BooleanType
    };
  }

  @Override
  public DataType resultType() {
    return RESULT;
  }

  @Override
  public String canonicalName() {
    return "construct_messages.statement";
  }
}
