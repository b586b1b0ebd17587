import java.io.*;
import java.nio.charset.StandardCharsets;
import java.util.*;
import org.apache.jena.query.*;
import org.apache.jena.riot.*;
import org.apache.jena.riot.lang.LabelToNode;
import org.apache.jena.riot.out.NodeFmtLib;
import org.apache.jena.sparql.core.*;
import org.apache.jena.sparql.engine.*;
import org.apache.jena.sparql.engine.binding.Binding;
import org.apache.jena.sparql.engine.ref.QueryEngineRef;
import org.apache.jena.sparql.util.Context;

/**
 * Evaluates SELECT queries by Jena's reference evaluator, which follows section 18 of SPARQL 1.1 without an optimizer.
 * A request is N-Quads and a query, an answer its solutions as lines of terms in the order of its variables, or "!" and
 * a reason; each is UTF-8 after its length in four bytes. Labels of blank nodes are those of the data.
 */
public class Arq {
    public static void main(String[] arguments) throws IOException {
        DataInputStream requests = new DataInputStream(new BufferedInputStream(System.in));
        DataOutputStream answers = new DataOutputStream(new BufferedOutputStream(System.out));
        org.apache.jena.sys.JenaSystem.init();
        while (true) {
            String quads;
            try {
                quads = text(requests);
            } catch (EOFException end) {
                return;
            }
            String answer;
            try {
                answer = solutions(quads, text(requests));
            } catch (RuntimeException error) {
                answer = "!" + error;
            }
            byte[] bytes = answer.getBytes(StandardCharsets.UTF_8);
            answers.writeInt(bytes.length);
            answers.write(bytes);
            answers.flush();
        }
    }

    private static String text(DataInputStream requests) throws IOException {
        return new String(requests.readNBytes(requests.readInt()), StandardCharsets.UTF_8);
    }

    private static String solutions(String quads, String text) {
        DatasetGraph dataset = DatasetGraphFactory.create();
        RDFParser.create().fromString(quads).lang(Lang.NQUADS).checking(false)
            .labelToNode(LabelToNode.createUseLabelAsGiven()).parse(dataset);
        Query query = QueryFactory.create(text, Syntax.syntaxSPARQL_11);
        Context context = ARQ.getContext().copy();
        Plan plan = QueryEngineRef.getFactory().create(query, dataset, null, context);
        StringBuilder answer = new StringBuilder();
        QueryIterator found = plan.iterator();
        while (found.hasNext()) {
            Binding solution = found.next();
            StringJoiner row = new StringJoiner("\t");
            for (String name : query.getResultVars()) {
                org.apache.jena.graph.Node value = solution.get(Var.alloc(name));
                row.add(value == null ? "" : value.isBlank() ? "_:" + value.getBlankNodeLabel() : NodeFmtLib.strNT(value));
            }
            answer.append(row).append("\n");
        }
        found.close();
        return String.join("\t", query.getResultVars()) + "\n" + answer;
    }
}
