import java.io.File;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hdfs.MiniDFSCluster;

/** HDFS with one node in the folder of the first argument: prints its port, and runs until it is killed. */
public class Hdfs {
  public static void main(String[] arguments) throws Exception {
    MiniDFSCluster cluster =
        new MiniDFSCluster.Builder(new Configuration(), new File(arguments[0])).numDataNodes(1).build();
    cluster.waitActive();
    System.out.println(cluster.getNameNodePort());
    Thread.sleep(Long.MAX_VALUE);
  }
}
