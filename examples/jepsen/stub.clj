;; What taipan.clj needs of Jepsen, for a test without it, and the test.
(ns jepsen.checker)
(defprotocol Checker (check [checker test history opts]))

(ns jepsen.store
  (:require [clojure.java.io :as io]))
(defn path! [test & parts]
  (let [folder (apply io/file (:folder test) (remove nil? parts))]
    (.mkdirs folder)
    folder))

(ns user)
(let [[library program folder] *command-line-args*
      op (fn [index type process value] {:index index :type type :process process :f :txn :value value :time index})
      sound [(op 0 :invoke 0 [[:append 1 1]]) (op 1 :ok 0 [[:append 1 1]])
             (op 2 :invoke 1 [[:r 1 nil]]) (op 3 :ok 1 [[:r 1 [1]]])]
      stale (assoc-in sound [3 :value] [[:r 1 nil]])]
  (dosync (alter @#'clojure.core/*loaded-libs* conj 'jepsen.checker 'jepsen.store))
  (load-file library)
  (let [checker ((resolve 'taipan/checker) {:taipan program})
        check (fn [history] (jepsen.checker/check checker {:folder folder} history {}))]
    (prn (select-keys (check sound) [:valid?]))
    (prn (select-keys (check stale) [:valid? :anomaly-types :not])))
  (shutdown-agents))
