package construct_messages.spark;

import org.apache.spark.sql.catalyst.analysis.NoSuchFunctionException;
import org.apache.spark.sql.connector.catalog.FunctionCatalog;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** The catalog that Spark's SQL finds the functions of this package in; it has one. */
public final class Functions implements FunctionCatalog {
  private static final String STATEMENT = "statement";

  private String catalog;

  @Override
  public void initialize(String name, CaseInsensitiveStringMap options) {
    catalog = name;
  }

  @Override
  public String name() {
    return catalog;
  }

  @Override
  public Identifier[] listFunctions(String[] namespace) {
    return new Identifier[] {Identifier.of(new String[0], STATEMENT)};
  }

  @Override
  public UnboundFunction loadFunction(Identifier name) throws NoSuchFunctionException {
    if (name.namespace().length == 0 && name.name().equals(STATEMENT)) {
      return new Statement();
    }
    throw new NoSuchFunctionException(name);
  }
}
