(ns taipan
  "Taipan as a checker of Jepsen: writes the history, runs `taipan elle` on it and returns the result map.

      (require '[taipan])
      {:checker (taipan/checker {:consistency-models [:snapshot-isolation]})}

  Options, all of them optional:

    :taipan              the program (default \"taipan\")
    :consistency-models  as Elle's (default [:strict-serializable])
    :anomalies           as Elle's
    :timeout-ms          :valid? is :unknown after this many milliseconds per model

  The map is Elle's: :valid?, :anomaly-types, :anomalies, :not and :also-not. Explanations and pictures of anomalies are
  written into the folder `taipan` of the test's store."
  (:require [clojure.edn :as edn]
            [clojure.java.io :as io]
            [clojure.java.shell :refer [sh]]
            [clojure.string :as str]
            [jepsen.checker :as checker]
            [jepsen.store :as store]))

(defn arguments
  "The command line for a history file and a folder for what is found."
  [{:keys [consistency-models anomalies timeout-ms taipan]} file folder]
  (let [names #(str/join "," (map name %))]
    (cond-> [(or taipan "taipan") "--quiet" "elle" "--verbose" "--format" "edn" "--directory" (str folder)]
      consistency-models (conj "--consistency-models" (names consistency-models))
      anomalies          (conj "--anomalies" (names anomalies))
      timeout-ms         (conj "--cycle-search-timeout" (str timeout-ms))
      true               (conj (str file)))))

(defn write-history!
  "Writes operations as EDN, one per line."
  [file history]
  (with-open [out (io/writer file)]
    (binding [*out* out *print-length* nil *print-level* nil]
      (doseq [op history]
        (prn (select-keys op [:index :type :process :f :value :time]))))))

(defn check
  "The result map of a history."
  [opts history folder]
  (let [file (io/file folder "history.edn")]
    (io/make-parents file)
    (write-history! file history)
    (let [{:keys [exit out err]} (apply sh (arguments opts file folder))]
      (if (<= 0 exit 2)
        (edn/read-string out)
        (throw (ex-info (str "taipan failed: " (str/trim err)) {:exit exit}))))))

(defn checker
  "A checker that asks Taipan."
  ([] (checker {}))
  ([opts]
   (reify checker/Checker
     (check [_ test history checker-opts]
       (let [folder (store/path! test (:subdirectory checker-opts) "taipan")]
         (check opts history folder))))))
